"""The unlearning sample inference game: the mathematics alone, numpy and scipy.special alone.

Read in this order: ``splits`` and ``sensitivity`` (who is forgotten, and who matters), ``adversary`` (who asks, and
what they may see), ``advantage`` and ``strong`` (what they gain), ``intervals`` and ``permutation`` (how sure we are),
``quality`` (Q, and what choosing the best adversary costs), ``bounds`` (what that says about a certificate),
``assessment`` (all of it in one call). ``comparison`` sets methods side by side, ``adaptive`` says how many pairs are
enough, ``direction`` and ``likeness`` find doubtful scores, ``diagnostics`` holds what is not Q.
"""
