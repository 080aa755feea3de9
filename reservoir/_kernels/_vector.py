"""SIMD code that numba does not generate automatically, in LLVM's intermediate representation.

For products with sparse rows, and for several rows at once, numba emits only scalar instructions.
The intrinsics of this module emit operations on vectors of eight numbers instead, which LLVM maps
to the registers of the machine. Of LLVM's fast-math flags only two are used, which do not affect
NaN and infinity: one fuses a multiplication and an addition, one ignores the sign of zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from reservoir._kernels._layout import LANES

_FLAGS = ("contract", "nsz")
LONG = ir.IntType(64)


class Vectors:
    """Emitter of arithmetic on vectors of n numbers; `array_type` determines the precision.

    LLVM splits vectors longer than a register operation by operation, so that the chains of
    operations of several registers interleave and hide each other's latency. Every method appends
    LLVM instructions to the function under construction (`builder`) and returns the LLVM value of
    their result. Each intrinsic creates a separate object.
    """

    def __init__(self, context: Any, builder: Any, array_type: Any, n: int = LANES) -> None:
        self.context, self.builder, self.n = context, builder, n
        self.bits = array_type.dtype.bitwidth
        self.scalar = context.get_data_type(array_type.dtype)
        self.vector = ir.VectorType(self.scalar, n)
        self.integers = ir.VectorType(ir.IntType(self.bits), n)
        self.undefined = ir.Constant(self.vector, ir.Undefined)

    def data(self, array_type: Any, value: Any) -> Any:
        """Return the pointer to the first number of an array; raise for other types and orders."""
        number = array_type.dtype
        other = isinstance(number, types.Float) and number.bitwidth != self.bits
        if other or array_type.layout != "C":
            raise TypingError(f"{array_type} among arrays of {self.bits} bits in C order")
        return make_array(array_type)(self.context, self.builder, value).data

    def const(self, value: float) -> Any:
        return ir.Constant(self.vector, [value] * self.n)

    def const_int(self, value: int) -> Any:
        return ir.Constant(self.integers, [value] * self.n)

    def add(self, x: Any, y: Any) -> Any:
        return self.builder.fadd(x, y, flags=_FLAGS)

    def sub(self, x: Any, y: Any) -> Any:
        return self.builder.fsub(x, y, flags=_FLAGS)

    def mul(self, x: Any, y: Any) -> Any:
        return self.builder.fmul(x, y, flags=_FLAGS)

    def div(self, x: Any, y: Any) -> Any:
        return self.builder.fdiv(x, y, flags=_FLAGS)

    def muladd(self, x: Any, y: Any, z: Any) -> Any:
        return self.add(self.mul(x, y), z)

    def mix(self, a: Any, x: Any, b: Any, y: Any) -> Any:
        """Return a * x + b * y; the second product is rounded, so that bits are the same anywhere.

        If LLVM could fuse either product with the addition, it would choose by the context.
        """
        return self.muladd(a, x, self.builder.fmul(b, y, flags=("nsz",)))

    def as_int(self, x: Any) -> Any:
        return self.builder.bitcast(x, self.integers)

    def as_float(self, x: Any) -> Any:
        return self.builder.bitcast(x, self.vector)

    def choose(self, sign: str, x: Any, y: Any, yes: Any, no: Any) -> Any:
        """Return, lane by lane, `yes` where the comparison ``x sign y`` is true, else `no`."""
        return self.builder.select(self.builder.fcmp_ordered(sign, x, y), yes, no)

    def broadcast(self, x: Any) -> Any:
        """Return a vector that repeats one number."""
        first = self.builder.insert_element(self.undefined, x, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.n), [0] * self.n)
        return self.builder.shuffle_vector(first, self.undefined, zeros)

    def pointer(self, base: Any, index: Any) -> Any:
        """Return the pointer to the vector that begins at ``base[index]``."""
        return self.builder.bitcast(self.builder.gep(base, [index]), self.vector.as_pointer())

    def load(self, base: Any, index: Any) -> Any:
        """Return the numbers ``base[index : index + n]``."""
        return self.builder.load(self.pointer(base, index), align=self.bits // 8)

    def store(self, x: Any, base: Any, index: Any) -> None:
        """Write the numbers to ``base[index : index + n]``."""
        self.builder.store(x, self.pointer(base, index), align=self.bits // 8)

    def sums(self, n: int) -> list[Any]:
        """Return pointers to n accumulators, set to zero: several hide the latency of additions."""
        places = [cgutils.alloca_once(self.builder, self.vector) for _ in range(n)]
        for place in places:
            self.builder.store(self.const(0.0), place)
        return places

    def add_product(self, place: Any, x: Any, y: Any) -> None:
        """Add x * y, lane by lane, to the accumulator at `place`."""
        self.builder.store(self.muladd(x, y, self.builder.load(place)), place)

    def total(self, places: list[Any]) -> Any:
        """Return the sum of several accumulators, added in pairs: a vector of eight numbers."""
        parts = [self.builder.load(place) for place in places]
        while len(parts) > 1:
            parts = [self.add(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
        return parts[0]

    def across(self, x: Any) -> Any:
        """Return the sum of the eight numbers in a vector, added in pairs."""
        parts = [self.builder.extract_element(x, ir.IntType(32)(lane)) for lane in range(LANES)]
        while len(parts) > 1:
            parts = [self.add(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
        return parts[0]


def unrolled(builder: Any, start: Any, stop: Any, n: int, body: Callable[[Any, int], None]) -> None:
    """Emit the loop ``for j in range(start, stop): body(j, which)``, unrolled n times.

    `which` counts from 0 to n - 1 within a round, so that `body` can add to n accumulators in turn.
    The iterations after the last whole round run one by one, with ``which = 0``.
    """
    whole = builder.add(start, builder.and_(builder.sub(stop, start), LONG(-n)))
    with cgutils.for_range_slice(builder, start, whole, LONG(n), LONG) as (j, _):
        for which in range(n):
            body(builder.add(j, LONG(which)), which)
    with cgutils.for_range_slice(builder, whole, stop, LONG(1), LONG) as (j, _):
        body(j, 0)


# --- activation functions


class _Format(NamedTuple):
    """Constants of a floating-point format, IEEE double or single, for the exponential.

    `series` is a polynomial for (exp(r) - 1 - r) / r^2 on [-ln(2)/4, 3 ln(2)/4], highest power
    first, close to the best approximation in the maximum norm; `tanh_series` is the same for
    ((exp(2 s) - 1) / 2 - s) / s^2 on [-ln(2)/8, 3 ln(2)/8].
    """

    mantissa: int  # number of stored bits
    bias: int  # of the exponent
    magic: float  # 1.5 * 2^mantissa: adding it rounds a number to an integer, in the low bits
    ln2: tuple[float, float]  # in two parts, the first with trailing zeros: exact multiples
    tanh_is_one: float  # from this x on, tanh(x) rounds to 1
    exp_is_zero: float  # from this x on, exp(-x) rounds to 0
    exp_is_normal: float  # up to this x, exp(-x) is a normal number
    series: tuple[float, ...]
    tanh_series: tuple[float, ...]


FORMATS = {
    64: _Format(
        mantissa=52,
        bias=1023,
        magic=6755399441055744.0,
        ln2=(6.93147180369123816490e-01, 1.90821492927058770002e-10),
        tanh_is_one=19.5,
        exp_is_zero=750.0,
        exp_is_normal=708.0,
        series=(  # relative error 5e-18
            2.422160282863727e-09,
            2.4813676895315184e-08,
            2.756356805188907e-07,
            2.7557358514655237e-06,
            2.4801582790998368e-05,
            0.00019841269878961512,
            0.0013888888889792457,
            0.008333333333323291,
            0.04166666666666604,
            0.1666666666666667,
            0.5,
        ),
        tanh_series=(
            5.030079864716174e-06,
            2.5347780166402896e-05,
            0.00014114430621359276,
            0.000705466604829836,
            0.003174602405482711,
            0.012698412762864016,
            0.044444444447266154,
            0.1333333333329298,
            0.33333333333333165,
            0.6666666666666673,
            1.0,
        ),
    ),
    32: _Format(
        mantissa=23,
        bias=127,
        magic=12582912.0,
        ln2=(0.693145751953125, 1.42860682030941723e-06),
        tanh_is_one=9.2,
        exp_is_zero=105.0,
        exp_is_normal=87.0,
        series=(  # relative error 4e-9
            0.000226598182239314,
            0.0013813407255159054,
            0.008332745906214871,
            0.04166697387408635,
            0.16666666711110478,
            0.4999999984360765,
        ),
        tanh_series=(
            0.014798102848086319,
            0.044074196692685,
            0.1333333755122568,
            0.3333373300331025,
            0.6666665702924708,
            0.9999999906994449,
        ),
    ),
}
_LOG2E = 1.4426950408889634


def expm1_parts(v: Vectors, y: Any) -> tuple[Any, Any]:
    """Return (k, m) with exp(y) = 2^k (1 + m): k as integers, m in [-.16, .69].

    k is y / ln(2) rounded to an integer, but only fractions from 3/4, not 1/2, are rounded up. With
    1/2, exp(y) - 1 = 2 (1 + m) - 1 would cancel at the smallest y with k = 1, and lose its last
    digit.
    """
    constants = FORMATS[v.bits]
    # k, by adding and subtracting a number so large that the fraction does not fit in the mantissa
    magic = v.const(constants.magic)
    shifted = v.add(v.sub(v.mul(y, v.const(_LOG2E)), v.const(0.25)), magic)
    k = v.sub(shifted, magic)
    # r = y - k ln(2), with ln(2) in two parts so that k times the first is exact
    high, low = constants.ln2
    r = v.sub(v.sub(y, v.mul(k, v.const(high))), v.mul(k, v.const(low)))
    # m = exp(r) - 1 = r + r^2 times the polynomial (Horner's scheme)
    series = constants.series
    p = v.const(series[0])
    for coefficient in series[1:]:
        p = v.muladd(p, r, v.const(coefficient))
    m = v.muladd(v.mul(p, r), r, r)
    return v.builder.sub(v.as_int(shifted), v.as_int(magic)), m


def power_of_two(v: Vectors, k: Any) -> Any:
    """Return 2^k for integers k, made from the bits of the exponent; k must give normal numbers."""
    constants = FORMATS[v.bits]
    biased = v.builder.add(k, v.const_int(constants.bias))
    return v.as_float(v.builder.shl(biased, v.const_int(constants.mantissa)))


def sign_and_size(v: Vectors, x: Any, limit: float) -> tuple[Any, Any]:
    """Return the sign bits of x, as integers, and min(|x|, limit); NaN stays NaN."""
    bits = v.as_int(x)
    sign = v.builder.and_(bits, v.const_int(-(2 ** (v.bits - 1))))
    size = v.as_float(v.builder.and_(bits, v.const_int(2 ** (v.bits - 1) - 1)))
    return sign, v.choose(">", size, v.const(limit), v.const(limit), size)


def tanh(v: Vectors, x: Any, corrected: bool = True) -> Any:
    """Return tanh(x), from tanh|x| = h / (1 + h), h = (exp(2|x|) - 1) / 2.

    Without the correction it is faster, and accurate to a few units in the last place.
    """
    constants, one, half = FORMATS[v.bits], v.const(1.0), v.const(0.5)
    sign, size = sign_and_size(v, x, constants.tanh_is_one)
    # k = 2|x| / ln(2), as in `expm1_parts`; the constant also adds the bias of the exponent
    magic = v.const(constants.magic + constants.bias)
    scaled = v.sub(v.mul(size, v.const(2 * _LOG2E)), v.const(0.25))
    shifted = v.add(scaled, magic)
    power = v.as_float(v.builder.shl(v.as_int(shifted), v.const_int(constants.mantissa)))  # 2^k
    # m = (exp(2 s) - 1) / 2 of the remainder s; the polynomial in pairs, half as long a chain
    s = v.sub(size, v.mul(v.sub(shifted, magic), v.const(math.log(2) / 2)))
    square = v.mul(s, s)
    low = [v.const(coefficient) for coefficient in constants.tanh_series[::-1]]
    pairs = [v.muladd(b, s, a) for a, b in zip(low[::2], low[1::2], strict=False)]
    pairs += low[len(low) & ~1 :]
    p = pairs.pop()
    for pair in reversed(pairs):
        p = v.muladd(p, square, pair)
    m = v.muladd(p, square, s)
    # h, and the quotient; `lost` is the rounding error of 1 + h
    h = v.muladd(power, m, v.sub(v.mul(half, power), half))
    d = v.add(one, h)
    t = v.div(h, d)
    if corrected:
        lost = v.sub(h, v.sub(d, one))
        rest = v.sub(v.sub(h, v.mul(t, d)), v.mul(t, lost))
        t = v.muladd(rest, v.sub(one, t), t)  # 1 / (1 + h) = 1 - t
        t = v.choose(">", t, one, one, t)
    return v.as_float(v.builder.or_(v.as_int(t), sign))


def _decaying_exp(v: Vectors, x: Any) -> tuple[Any, Any]:
    """Return exp(-|x|) and its rounding error."""
    one = v.const(1.0)
    _, size = sign_and_size(v, x, FORMATS[v.bits].exp_is_zero)
    k, m = expm1_parts(v, v.sub(v.const(0.0), size))
    half = v.builder.ashr(k, v.const_int(1))  # in two steps, since 2^k itself may be subnormal
    first, second = power_of_two(v, half), power_of_two(v, v.builder.sub(k, half))
    whole = v.add(one, m)
    lost = v.mul(v.mul(v.sub(m, v.sub(whole, one)), first), second)
    return v.mul(v.mul(whole, first), second), lost


def logistic(v: Vectors, x: Any) -> Any:
    """Return the logistic function, 1 / (1 + t) if x >= 0, else t / (1 + t), with t = exp(-|x|)."""
    one, zero = v.const(1.0), v.const(0.0)
    t, t_lost = _decaying_exp(v, x)
    # the denominator, and its rounding error
    d = v.add(one, t)
    d_lost = v.add(v.sub(t, v.sub(d, one)), t_lost)
    above = v.builder.fcmp_ordered(">=", x, zero)
    n = v.builder.select(above, one, t)
    n_lost = v.builder.select(above, zero, t_lost)
    # the quotient, corrected by the remainder of the division
    q = v.div(n, d)
    rest = v.add(v.sub(v.sub(n, v.mul(q, d)), v.mul(q, d_lost)), n_lost)
    inverse = v.builder.select(above, q, v.sub(one, q))  # 1 / (1 + t)
    return v.muladd(rest, inverse, q)


def softplus(v: Vectors, x: Any) -> Any:
    """Return softplus(x) = max(x, 0) + log(1 + t), with t = exp(-|x|).

    The logarithm is ``t - s (t - 2 (s^2 / 3 + s^4 / 5 + ...))`` with ``s = t / (2 + t)``, at most
    1/3.
    """
    t, _ = _decaying_exp(v, x)
    s = v.div(t, v.add(v.const(2.0), t))
    square = v.mul(s, s)
    n_terms = 16 if v.bits == 64 else 7  # the next term is below the rounding error of the first
    p = v.const(2 / (2 * n_terms + 1))
    for k in range(n_terms - 1, 0, -1):
        p = v.muladd(p, square, v.const(2 / (2 * k + 1)))
    log = v.sub(t, v.mul(s, v.sub(t, v.mul(p, square))))
    zero = v.const(0.0)
    return v.add(v.choose(">", x, zero, x, zero), log)


def lines_at_once(context: Any) -> int:
    """Return the number of cache lines of numbers that are best handled at a time.

    More would not fit into the registers: there are 32 of the size of a line with AVX-512, and
    fewer, or shorter ones, on other processors.
    """
    return 4 if "+avx512f" in context.codegen().magic_tuple()[2].split(",") else 2


def gathers_fast(triple: str, cpu: str, features: str) -> bool:
    """Whether the processor's gather instruction is faster than eight single loads.

    A gather loads eight numbers from eight addresses. It is faster on Intel processors with
    AVX-512, unless slowed down by the mitigation of "gather data sampling" (2022); on AMD
    processors it is slower.
    """
    if "+avx512f" not in features.split(",") or cpu.startswith("znver"):
        return False
    try:
        status = Path("/sys/devices/system/cpu/vulnerabilities/gather_data_sampling").read_text()
    except OSError:  # another operating system, or an older kernel
        return False
    return status.startswith("Not affected")


def _load_indices(v: Vectors, index: Any, start: Any, index_type: Any) -> Any:
    """Return the eight column indices ``index[start : start + 8]``, widened to 32 bits."""
    kind, wide = ir.VectorType(index_type, LANES), ir.VectorType(ir.IntType(32), LANES)
    place = v.builder.bitcast(v.builder.gep(index, [start]), kind.as_pointer())
    places = v.builder.load(place, align=index_type.width // 8)
    return places if index_type.width == 32 else v.builder.zext(places, wide)


def _gather(v: Vectors, base: Any, places: Any) -> Any:
    """Return the eight numbers ``base[places]``, read by the processor's gather instruction."""
    address = ir.IntType(8).as_pointer()
    if v.bits == 64:  # the mask selects the lanes to load: by a bit each, or below by a sign bit
        name, mask_type = "llvm.x86.avx512.mask.gather.dpd.512", ir.VectorType(ir.IntType(1), LANES)
        mask, scale = ir.Constant(mask_type, [1] * LANES), ir.IntType(32)(8)
    else:
        name, mask_type = "llvm.x86.avx2.gather.d.ps.256", v.vector
        mask, scale = v.const(-0.0), ir.IntType(8)(4)
    arguments = (v.const(0.0), v.builder.bitcast(base, address), places, mask, scale)
    kind = ir.FunctionType(v.vector, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(v.builder.module, kind, name)
    return v.builder.call(function, arguments)


@intrinsic
def gather_dot8(
    typingctx: Any, z: Any, rows: Any, data: Any, indices: Any, start: Any, stop: Any, slice_: Any,
    x: Any, at: Any,
) -> Any:  # fmt: skip
    """Write the eight entries of W x that belong to one slice into z, for a W in layout `Sell`.

    `rows`, `data` and `indices` are from the layout; the rows ``start : stop`` of `data` belong to
    the slice, and each contains one entry of each of its rows of W. The vector begins at ``x[at]``;
    it and `z` are padded to whole vectors. If `rows` is empty, the rows of W are in order.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        v = Vectors(context, builder, signature.args[7])
        to, row, weight, index = (v.data(signature.args[i], args[i]) for i in range(4))
        source = builder.gep(v.data(signature.args[7], args[7]), [args[8]])
        n_rows = make_array(signature.args[1])(context, builder, args[1]).nitems
        index_type = context.get_data_type(signature.args[3].dtype)
        hardware = gathers_fast(*context.codegen().magic_tuple())
        (place_of_sum,) = v.sums(1)

        # eight products of a weight and its entry of x
        with cgutils.for_range_slice(builder, args[4], args[5], LONG(1), LONG) as (j, _):
            base = builder.mul(j, LONG(LANES))
            if hardware:
                gathered = _gather(v, source, _load_indices(v, index, base, index_type))
            else:
                gathered = v.undefined
                for lane in range(LANES):
                    place = builder.load(builder.gep(index, [builder.add(base, LONG(lane))]))
                    number = builder.load(builder.gep(source, [builder.zext(place, LONG)]))
                    gathered = builder.insert_element(gathered, number, ir.IntType(32)(lane))
            v.add_product(place_of_sum, v.load(weight, base), gathered)

        total, base = v.total([place_of_sum]), builder.mul(args[6], LONG(LANES))
        with builder.if_else(builder.icmp_signed("==", n_rows, LONG(0))) as (ordered, sorted_):
            with ordered:  # one store, from which the next pass can load at once
                v.store(total, to, base)
            with sorted_:  # rows were sorted by length: write each lane to its original row
                for lane in range(LANES):
                    place = builder.load(builder.gep(row, [builder.add(base, LONG(lane))]))
                    number = builder.extract_element(total, ir.IntType(32)(lane))
                    builder.store(number, builder.gep(to, [builder.zext(place, LONG)]))
        return context.get_dummy_value()

    long = types.int64
    return types.void(z, rows, data, indices, long, long, long, x, long), codegen


@intrinsic
def dense_dot8(typingctx: Any, z: Any, data: Any, slice_: Any, n: Any, x: Any, at: Any) -> Any:
    """Write ``z[8 slice_ : 8 slice_ + 8]``: eight rows of a W in the layout `Dense`, times x.

    `data` is from the layout, and n is the number of columns of W. The vector begins at ``x[at]``.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        v = Vectors(context, builder, signature.args[4])
        to, weight, source = (v.data(signature.args[i], args[i]) for i in (0, 1, 4))
        source = builder.gep(source, [args[5]])
        first = builder.mul(args[2], builder.mul(args[3], LONG(LANES)))
        sums = v.sums(8)

        def column(j: Any, which: int) -> None:
            weights = v.load(weight, builder.add(first, builder.mul(j, LONG(LANES))))
            number = builder.load(builder.gep(source, [j]))
            v.add_product(sums[which], weights, v.broadcast(number))

        unrolled(builder, LONG(0), args[3], len(sums), column)
        v.store(v.total(sums), to, builder.mul(args[2], LONG(LANES)))
        return context.get_dummy_value()

    long = types.int64
    return types.void(z, data, long, long, x, long), codegen


@intrinsic
def dot8(typingctx: Any, a: Any, start: Any, x: Any, at: Any, n: Any) -> Any:
    """Return the scalar product of ``a[start : start + n]`` and ``x[at : at + n]``; 8 divides n."""

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        v = Vectors(context, builder, signature.args[2])
        left = v.data(signature.args[0], args[0])
        right = builder.gep(v.data(signature.args[2], args[2]), [args[3]])
        sums = v.sums(4)

        def entry(j: Any, which: int) -> None:
            base = builder.mul(j, LONG(LANES))
            numbers = v.load(left, builder.add(args[1], base))
            v.add_product(sums[which], numbers, v.load(right, base))

        count = builder.lshr(args[4], LONG(LANES.bit_length() - 1))
        unrolled(builder, LONG(0), count, len(sums), entry)
        return v.across(v.total(sums))

    long = types.int64
    return x.dtype(a, long, x, long, long), codegen


def transposed(v: Vectors, rows: list[Any]) -> list[Any]:
    """Return the columns of eight vectors of eight numbers, as vectors."""
    kind = ir.VectorType(ir.IntType(32), LANES)
    columns = list(rows)
    for bit in (1, 2, 4):  # swap the blocks of this size off the diagonal
        low = [j if j & bit == 0 else LANES + (j ^ bit) for j in range(LANES)]
        high = [j ^ bit if j & bit == 0 else LANES + j for j in range(LANES)]
        for i in range(LANES):
            if i & bit == 0:
                a, b = columns[i], columns[i | bit]
                columns[i] = v.builder.shuffle_vector(a, b, ir.Constant(kind, low))
                columns[i | bit] = v.builder.shuffle_vector(a, b, ir.Constant(kind, high))
    return columns
