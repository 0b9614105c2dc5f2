"""Which freedom an operator leaves to whoever implements it, as tables of names.

What is in none of them is taken to round on its way (reductions, contractions, composite functions), which is
the safe side: it is forgiven most.
"""

from __future__ import annotations

EXACT = frozenset(
    """
    view reshape transpose permute t slice select squeeze unsqueeze expand as_strided alias detach
    diagonal unfold split split_with_sizes chunk unbind narrow movedim flatten unflatten view_as
    expand_as swapaxes unsafe_chunk unsafe_split contiguous to _to_copy type_as clone copy copy_ cat
    concat stack hstack vstack where masked_fill masked_fill_ masked_select neg neg_ abs abs_ sign
    sgn floor ceil round trunc fix floor_ ceil_ round_ trunc_ floor_divide floor_divide_ fmod fmod_
    maximum minimum fmax fmin amax amin max min argmax argmin sort topk kthvalue median nanmedian
    mode clamp clamp_ clamp_min clamp_max clip relu relu_ relu6 hardtanh threshold leaky_relu eq ne
    lt le gt ge isnan isinf isfinite logical_and logical_or logical_not logical_xor bitwise_and
    bitwise_or bitwise_xor bitwise_not arange full full_like zeros zeros_like ones ones_like
    new_zeros new_ones new_full scalar_tensor eye tril triu embedding gather index index_select take
    take_along_dim scatter scatter_ slice_scatter select_scatter diagonal_scatter as_strided_scatter
    fill fill_ zero_ pad constant_pad_nd reflection_pad1d reflection_pad2d replication_pad1d
    replication_pad2d replication_pad3d flip roll rot90 repeat repeat_interleave tile nonzero unique
    one_hot bincount histc searchsorted bucketize max_pool1d max_pool2d max_pool3d
    max_pool2d_with_indices adaptive_max_pool1d adaptive_max_pool2d nan_to_num signbit copysign
    lift_fresh_copy lift_fresh empty empty_like empty_strided new_empty item _local_scalar_dense
    real imag view_as_real view_as_complex complex conj _conj resolve_conj resolve_neg pixel_shuffle
    pixel_unshuffle channel_shuffle broadcast_tensors meshgrid cummax cummin ldexp frexp glu_
    dropout native_dropout bernoulli any all isin heaviside sym_size index_put_ index_put
    """.split()
)
ROUNDED_ONCE = frozenset(
    """
    add add_ sub sub_ rsub mul mul_ div div_ true_divide reciprocal sqrt square addcmul addcdiv lerp
    remainder remainder_
    """.split()
)
RANDOM = frozenset(
    """
    rand randn randint randperm rand_like randn_like randint_like bernoulli bernoulli_ normal
    normal_ uniform_ dropout native_dropout multinomial exponential_ random_ rrelu alpha_dropout
    feature_dropout
    """.split()
)
UNINITIALISED = frozenset(
    ["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"]
)
TIES = {
    "topk": 2,
    "sort": 1,
    "argsort": 1,
    "max": 1,
    "min": 1,
    "argmax": 1,
    "argmin": 1,
    "median": 1,
    "mode": 1,
}

WELL_DEFINED = frozenset(
    """
    exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh
    atanh sigmoid erf erfc rsqrt pow hypot
    """.split()
)
"""Functions whose values at infinity and NaN every implementation must give."""

COMPOSITE = frozenset(
    """
    gelu silu mish softplus elu selu celu hardswish hardsigmoid log_sigmoid logit xlogy sinc lgamma
    digamma erfinv binary_cross_entropy binary_cross_entropy_with_logits softshrink hardshrink
    tanhshrink
    """.split()
)
"""Elementwise functions made of several steps: at infinity, the steps may give NaN or the limit."""

HUGE = {"float32": 1e18, "bfloat16": 1e18, "float64": 1e150}
"""Beyond this the square of a value, or a long sum of such, overflows the dtype: an implementation may square
or sum in another order, and infinity or a number are then both right."""

PRODUCTS = frozenset("prod cumprod".split())
DIGITS = 37.0
"""A product whose factors above (or below) one have more decimal digits than this together may overflow (or
vanish) in one order of multiplying and not in another."""

REMAINDERS = frozenset("remainder remainder_ fmod fmod_".split())
LARGEST_QUOTIENT = 2.0**22
"""Beyond this a remainder that is computed from the rounded quotient has no digit right, and one that is
computed exactly has: both are in use."""

COORDINATES = ("upsample", "interpolate", "grid_sample", "affine_grid")
"""Names of operators that compute positions on the way: a position is rounded in proportion to its size, and
moves the result in proportion to the difference of neighbouring elements."""

SUMS = frozenset("sum mean nansum nanmean cumsum".split())
CONTRACTIONS = {
    **dict.fromkeys("mm bmm matmul mv dot linear".split(), (0, 1)),
    **dict.fromkeys("addmm addmv baddbmm addbmm".split(), (1, 2)),
    **dict.fromkeys("conv1d conv2d conv3d convolution _convolution".split(), (0, 1)),
}
"""Operators that add products up, and the positions of the factors among their arguments."""

LANES = 16
"""Partial sums that every implementation keeps at least: what a vector register holds."""
