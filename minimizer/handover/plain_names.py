"""Which public name stands for which ATen operator. Data only; a test checks every entry against torch."""

from __future__ import annotations

_FUNCTIONS = """
abs acos acosh add addbmm addcdiv addcmul addmm addmv addr adjoint all amax amin aminmax angle any arange
argmax argmin argsort argwhere as_strided as_strided_scatter asin asinh atan atan2 atanh baddbmm bernoulli
bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor block_diag
bmm bucketize cat cdist ceil celu channel_shuffle chunk clamp clamp_max clamp_min clone column_stack complex
conj conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution copysign cos cosh
count_nonzero cross cummax cummin cumprod cumsum deg2rad det detach diag diag_embed diagonal
diagonal_scatter diff digamma dist div dot dropout dstack einsum embedding empty empty_like eq erf erfc
erfinv exp exp2 expm1 eye fill fix flatten flip fliplr flipud float_power floor floor_divide fmax fmin fmod
frac frexp full full_like gather gcd ge group_norm gt hardshrink heaviside histc hstack hypot i0 igamma
igammac imag index_add index_copy index_fill index_put index_reduce index_select inner inverse isclose
isfinite isin isinf isnan isneginf isposinf isreal kron kthvalue layer_norm lcm ldexp le lerp lgamma
linspace log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not
logical_or logical_xor logit logspace logsumexp lt masked_fill masked_scatter masked_select matmul max
max_pool1d max_pool2d max_pool3d maximum mean median min minimum mm mode moveaxis movedim msort mul
multinomial mv nan_to_num nanmean nanmedian nanquantile nansum narrow native_batch_norm native_group_norm
native_layer_norm ne neg nextafter nonzero norm ones ones_like outer permute pixel_shuffle pixel_unshuffle
polar polygamma pow prelu prod quantile rad2deg rand rand_like randint randn randn_like randperm real
reciprocal relu remainder renorm repeat_interleave reshape resolve_conj resolve_neg rms_norm roll rot90
round rsqrt rsub scalar_tensor scatter scatter_add scatter_reduce searchsorted select select_scatter selu
sgn sigmoid sign signbit sin sinc sinh slice_scatter softmax sort split split_with_sizes sqrt square squeeze
stack std std_mean sub sum swapaxes swapdims t take take_along_dim tan tanh tensor_split threshold
tile topk trace transpose tril tril_indices triu triu_indices trunc unbind unflatten unsqueeze vander var
var_mean vdot view_as_complex view_as_real vstack where xlogy zeros zeros_like
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())
"""Operators whose ``torch.NAME`` takes the same positional arguments."""

_FUNCTIONAL = """
adaptive_avg_pool2d adaptive_avg_pool3d avg_pool2d avg_pool3d elu gelu glu hardsigmoid hardswish hardtanh
leaky_relu linear mish one_hot pad relu6 scaled_dot_product_attention silu softplus softshrink
"""
FUNCTIONAL = {name: name for name in _FUNCTIONAL.split()} | {"log_sigmoid": "logsigmoid"}
"""Operators whose function lives in ``torch.nn.functional``."""

_METHODS = """
absolute_ add_ addbmm_ addcdiv_ addcmul_ addmm_ baddbmm_ bernoulli_ bitwise_and_ bitwise_not_ bitwise_or_
bitwise_xor_ clamp_ contiguous copy_ copysign_ cumprod_ cumsum_ div_ eq_ exp_ expand expand_as exponential_
fill_ fill_diagonal_ floor_ floor_divide_ fmod_ ge_ gt_ index_add_ index_copy_ index_fill_ index_put_ item
le_ lerp_ log_ logical_and_ logical_not_ logical_or_ logical_xor_ lt_ masked_fill_ masked_scatter_ mul_ ne_
neg_ new_empty new_full new_ones new_zeros normal_ pow_ random_ reciprocal_ relu_ remainder_ repeat
reshape_as round_ rsqrt_ scatter_ scatter_add_ scatter_reduce_ sigmoid_ sign_ sin_ sqrt_ squeeze_ sub_
sum_to_size t_ tanh_ to transpose_ tril_ triu_ trunc_ type_as unfold uniform_ unsqueeze_ view view_as zero_
"""
METHODS = frozenset(_METHODS.split())
"""Operators that are methods of a tensor, among them those that write to it."""

SUBMODULES = {"linalg_": "torch.linalg.", "fft_": "torch.fft.", "special_": "torch.special."}
"""Prefixes of operator names that stand for a module."""

OPERATORS = {
    "add": "operator.add",
    "sub": "operator.sub",
    "mul": "operator.mul",
    "div": "operator.truediv",
    "floor_divide": "operator.floordiv",
    "remainder": "operator.mod",
    "pow": "operator.pow",
    "matmul": "operator.matmul",
    "bitwise_and": "operator.and_",
    "bitwise_or": "operator.or_",
    "bitwise_xor": "operator.xor",
    "bitwise_left_shift": "operator.lshift",
    "bitwise_right_shift": "operator.rshift",
    "__and__": "operator.and_",
    "__or__": "operator.or_",
    "__xor__": "operator.xor",
    "__lshift__": "operator.lshift",
    "__rshift__": "operator.rshift",
    "eq": "operator.eq",
    "ne": "operator.ne",
    "lt": "operator.lt",
    "le": "operator.le",
    "gt": "operator.gt",
    "ge": "operator.ge",
    "neg": "operator.neg",
    "bitwise_not": "operator.invert",
}
"""Operators that Python has a sign for."""
