"""The unlearning sample inference game: the mathematics alone, numpy alone.

Read in this order: ``splits`` and ``sensitivity`` (who is forgotten, and who matters), ``oracle`` and ``adversary``
(who asks, and what they may see), ``advantage`` and ``quality`` (what they gain), ``intervals`` and ``permutation``
(how sure we are), ``assessment`` (all of it in one call). ``enumeration``, ``bounds`` and ``lookup`` hold the paper's
theory in a form that can be run.
"""
