"""Every layer draws from the same stream of random numbers."""

import torch

RNG_SEED = 0


def reseed() -> None:
    """Start every random stream anew.

    ``torch.manual_seed`` notes a stack trace for each device type that is not in use yet, which takes longer
    than a small program.
    """
    torch.default_generator.manual_seed(RNG_SEED)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(RNG_SEED)
