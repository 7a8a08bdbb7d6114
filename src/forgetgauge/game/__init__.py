"""The unlearning sample inference game: the mathematics alone, numpy and scipy.special alone.

Read in this order: ``splits`` and ``sensitivity`` (who is forgotten, and who matters), ``oracle`` and ``adversary``
(who asks, and what they may see), ``advantage``, ``strong`` and ``quality`` (what they gain), ``intervals`` and
``permutation`` (how sure we are), ``crossfit`` and ``supremum`` (what choosing the best of them costs), ``epsilon``
(what that says about a certificate), ``assessment`` (all of it in one call). ``comparison`` sets methods side by side,
``adaptive`` says how many pairs are enough, ``diagnostics`` holds what is not Q. ``enumeration``, ``bounds`` and
``lookup`` hold the paper's theory in a form that can be run.
"""
