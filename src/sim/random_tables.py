#!/usr/bin/env python3
"""Writes src/sim/random_tables.h: the layers of the ziggurats of random.h.

usage: random_tables.py > random_tables.h

Computed with 40 digits and rounded once, so that any machine writes the same.
A density f that falls from f(0) = 1 is covered by 256 layers of equal area v:
layer i reaches to x[i], and from height f(x[i]) to f(x[i + 1]). The lowest one
ends in the tail beyond r = x[1]; x[0] = v / f(r) is its width if it were a
rectangle. r is where the highest layer closes at f = 1.

Source: Marsaglia and Tsang, "The ziggurat method for generating random
variables", Journal of Statistical Software 5(8), 2000.
"""

from decimal import Decimal, getcontext

LAYERS = 256
getcontext().prec = 40


def arctan_of_inverse(n):
    """By its series; n is whole."""
    term = total = Decimal(1) / n
    k = 1
    while abs(term) > Decimal(10) ** -45:
        term /= -n * n
        k += 2
        total += term / k
    return total


PI = 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)


class Normal:
    """exp(-x^2 / 2), of which the right half is covered."""
    name = "normal"
    reach = "const double stg_random_normal_x" # drawn from where it is called
    lowest, highest = Decimal(3), Decimal(4)

    @staticmethod
    def density(x):
        return (-x * x / 2).exp()

    @staticmethod
    def inverse(y):
        return (-2 * y.ln()).sqrt()

    @classmethod
    def tail(cls, r):
        """The area beyond r: by the series of that below it."""
        term = total = r
        k = 1
        while term > Decimal(10) ** -45:
            k += 2
            term *= r * r / k
            total += term
        return (PI / 2).sqrt() - cls.density(r) * total


class Exponential:
    """exp(-x)."""
    name = "exponential"
    reach = "static const double exponential_x"
    lowest, highest = Decimal(7), Decimal(8)

    @staticmethod
    def density(x):
        return (-x).exp()

    @staticmethod
    def inverse(y):
        return -y.ln()

    @classmethod
    def tail(cls, r):
        return cls.density(r)


def layers(distribution, r):
    """x[0] to x[LAYERS - 1], and how high the highest one ends."""
    f = distribution.density(r)
    v = r * f + distribution.tail(r)
    x = [v / f, r]
    while len(x) < LAYERS:
        f += v / x[-1]
        if f >= 1:
            return x, Decimal(2)
        x.append(distribution.inverse(f))
    return x, f + v / x[-1]


def solve(distribution):
    low, high = distribution.lowest, distribution.highest
    while high - low > Decimal(10) ** -36:
        r = (low + high) / 2
        if layers(distribution, r)[1] > 1:
            low = r
        else:
            high = r
    return layers(distribution, high)[0] + [Decimal(0)]


def table(name, values):
    print(f"{name}[{len(values)}] = {{")
    for i in range(0, len(values), 3):
        print("    " + " ".join(f"{float(v).hex()}," for v in values[i:i + 3]))
    print("};")


def main():
    print("""\
/* random_tables.h - made by random_tables.py, which says what it is. */
#ifndef STAGGER_SIM_RANDOM_TABLES_H
#define STAGGER_SIM_RANDOM_TABLES_H

/* clang-format off */
""")
    for distribution in (Normal, Exponential):
        x = solve(distribution)
        print(f"/* Where the layers end: r is {float(x[1])!r}. */")
        table(distribution.reach, x)
        print("\n/* How high they lie. */")
        table(f"static const double {distribution.name}_f",
              [distribution.density(each) for each in x])
        print()
    print("/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    main()
