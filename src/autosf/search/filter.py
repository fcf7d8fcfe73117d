"""The filter Q (Sec. IV-B2): which candidates are worth a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autosf.algebra.constraints import satisfies_c2

if TYPE_CHECKING:
    from collections.abc import Container

    from autosf.algebra.structure import Structure


def passes_filter(form: Structure, seen: Container[Structure]) -> bool:
    """Whether a canonical form satisfies C2 and stands for none of the classes seen in H^b and T^b.

    The paper looks for the candidate's 9,216 images in what it has seen; equal canonical forms say the same. It
    prints the test as a meeting of all three sets; H^b and T^b together is what its text asks for.
    """
    return form not in seen and satisfies_c2(form)
