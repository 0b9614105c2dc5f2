"""Numbers that PyTorch prints for dtypes and device types, and their names.

From ``c10/core/ScalarType.h`` and ``c10/core/DeviceType.h``; the order is part of the serialisation format.
"""

from __future__ import annotations

DTYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("complex32", "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16"),
    *("quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"),
    *("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64"),
    *("uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7"),
    *("int1", "int2", "int3", "int4", "int5", "int6", "int7", "float8_e8m0fnu", "float4_e2m1fn_x2"),
)

DEVICE_TYPES = (
    *("cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "maia", "xla", "vulkan"),
    *("metal", "xpu", "mps", "meta", "hpu", "ve", "lazy", "ipu", "mtia", "privateuseone"),
)


def dtype_name(number: int) -> str:
    """The dtype of a ``c10::ScalarType``.

    >>> dtype_name(6), dtype_name(900)
    ('float32', 'dtype number 900')
    """
    return DTYPES[number] if 0 <= number < len(DTYPES) else f"dtype number {number}"


def device_name(number: int) -> str:
    """The device type of a ``c10::DeviceType``.

    >>> device_name(14)
    'meta'
    """
    return DEVICE_TYPES[number] if 0 <= number < len(DEVICE_TYPES) else f"device type number {number}"
