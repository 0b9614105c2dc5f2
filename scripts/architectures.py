"""Does the oracle raise a false alarm on real architectures? Tiny random ones of `transformers` are searched.

Each is written as a model file, compiled, and given inputs until a limit or a failure. There is no download:
weights are random. What is reported must be a compiler bug that can be shown by hand, or the oracle is wrong.
Inputs that eager or the exported program refuses count among those tried, and are counted beside them.

    pip install -c constraints.txt -e .[architectures]
    python scripts/architectures.py --inputs 500 --out architectures-out
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}
SMALL = {**TEXT, "intermediate_size": 64, "max_position_embeddings": 64}
IDS = "torch.arange(24).reshape(3, 8)"
MASK = "torch.ones(3, 8, dtype=torch.int64)"
IMAGE = {"image_size": 32, "num_channels": 3}
PIXELS = "torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))"


@dataclass(frozen=True)
class Architecture:
    """A model class, its configuration, and for each argument the code of its example.

    Dim 0 of every argument is the batch, which is dynamic; `part` picks a part of the model.
    """

    model: str
    config: str
    settings: dict[str, object]
    inputs: dict[str, str]
    part: str = ""

    def source(self, name: str) -> str:
        """The text of a model file."""
        passed = ", ".join(f"{key}={key}" for key in self.inputs)
        return f'''"""{name}: a tiny {self.model} with random weights."""

import torch
import transformers
from torch.export import Dim

transformers.logging.set_verbosity_error()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        config = transformers.{self.config}(**{self.settings!r})
        self.inner = transformers.{self.model}(config){self.part}

    def forward(self, {", ".join(self.inputs)}):
        return self.inner({passed}, return_dict=False)[0]


def get_model():
    return Model().eval()


def get_example_inputs():
    return ({", ".join(self.inputs.values())},)


def get_dynamic_shapes():
    batch = Dim("batch", min=1, max=16)
    return {{{", ".join(f'"{key}": {{0: batch}}' for key in self.inputs)}}}
'''


WORDS = {"input_ids": IDS, "attention_mask": MASK}
DECODER = {**SMALL, "use_cache": False}
ARCHITECTURES = {
    "bert": Architecture("BertModel", "BertConfig", SMALL, WORDS),
    "roberta": Architecture("RobertaModel", "RobertaConfig", SMALL, WORDS),
    "distilbert": Architecture(
        "DistilBertModel",
        "DistilBertConfig",
        {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 99},
        WORDS,
    ),
    "gpt2": Architecture(
        "GPT2Model",
        "GPT2Config",
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99, "n_positions": 64, "use_cache": False},
        WORDS,
    ),
    "llama": Architecture("LlamaModel", "LlamaConfig", {**DECODER, "num_key_value_heads": 2}, WORDS),
    "mistral": Architecture("MistralModel", "MistralConfig", {**DECODER, "num_key_value_heads": 2}, WORDS),
    "t5_encoder": Architecture(
        "T5EncoderModel",
        "T5Config",
        {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 99},
        WORDS,
    ),
    "mamba": Architecture(
        "MambaModel",
        "MambaConfig",
        {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 99, "state_size": 4, "use_cache": False},
        {"input_ids": IDS},
    ),
    "vit": Architecture(
        "ViTModel", "ViTConfig", {**SMALL, **IMAGE, "patch_size": 8}, {"pixel_values": PIXELS}
    ),
    "swin": Architecture(
        "SwinModel",
        "SwinConfig",
        {**IMAGE, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4},
        {"pixel_values": PIXELS},
    ),
    "convnext": Architecture(
        "ConvNextModel",
        "ConvNextConfig",
        {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_channels": 3},
        {"pixel_values": PIXELS},
    ),
    "resnet": Architecture(
        "ResNetModel",
        "ResNetConfig",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
        {"pixel_values": PIXELS},
    ),
    "clip_text": Architecture("CLIPTextModel", "CLIPTextConfig", {**SMALL, "eos_token_id": 2}, WORDS),
    "clip_vision": Architecture(
        "CLIPVisionModel", "CLIPVisionConfig", {**SMALL, **IMAGE, "patch_size": 8}, {"pixel_values": PIXELS}
    ),
    "whisper_encoder": Architecture(
        "WhisperModel",
        "WhisperConfig",
        {
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 1,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "vocab_size": 99,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "pad_token_id": 0,
            "decoder_start_token_id": 1,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        {"input_features": "torch.randn(3, 16, 40, generator=torch.Generator().manual_seed(0))"},
        part=".encoder",
    ),
    "wav2vec2": Architecture(
        "Wav2Vec2Model",
        "Wav2Vec2Config",
        {
            **SMALL,
            "conv_dim": [16, 16],
            "conv_kernel": [10, 3],
            "conv_stride": [5, 2],
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 2,
        },
        {"input_values": "torch.randn(3, 400, generator=torch.Generator().manual_seed(0))"},
    ),
}


def search(name: str, folder: Path, inputs: int, budget: float) -> dict[str, object]:
    """Run the tool on one architecture; its summary, with `status` ``unusable`` where it could not be run."""
    model = folder / f"{name}.py"
    model.write_text(ARCHITECTURES[name].source(name))
    out = folder / f"{name}-run"
    command = [sys.executable, "-m", "minimizer.cli", str(model), "--out", str(out)]
    command += ["--most-inputs", str(inputs), "--budget", str(budget), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    if done.returncode not in (0, 1):
        return {"status": "unusable", "message": said[-1] if said else f"exit status {done.returncode}"}
    found: dict[str, object] = json.loads((out / "summary.json").read_text())
    return found


def main() -> int:
    """The command; exit status 1 when something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="architectures (default: all of them)")
    parser.add_argument("--inputs", type=int, default=500, help="inputs given to each (default: 500)")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds for each (default: 300)")
    parser.add_argument("--out", type=Path, default=Path("architectures-out"), help="folder for the runs")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in ARCHITECTURES]
    if unknown:
        parser.error(f"unknown architecture {unknown[0]!r}; there are {', '.join(ARCHITECTURES)}")
    given.out.mkdir(parents=True, exist_ok=True)
    print(f"{'architecture':<16} {'calls':>5} {'inputs':>6} {'refused':>7}  answer")
    alarms = judged = 0
    for name in given.names or ARCHITECTURES:
        found = search(name, given.out, given.inputs, given.budget)
        alarms += found["status"] == "failure"
        judged += found["status"] != "unusable"
        answer = str(found.get("message") or found["status"]).splitlines()[0]
        counts = [found.get(key, "-") for key in ("nodes_before", "inputs_tried", "inputs_refused")]
        print(f"{name:<16} {counts[0]:>5} {counts[1]:>6} {counts[2]:>7}  {answer}", flush=True)
    print(f"{alarms} alarms in {judged} architectures")
    return 1 if alarms else 0


if __name__ == "__main__":
    raise SystemExit(main())
