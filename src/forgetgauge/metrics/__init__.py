"""What others measure unlearning by, set beside Q: the mathematics alone, numpy and scipy.special alone.

``scores`` has the scores (interclass confusion, membership inference, distance to a retrained model) and says how sure
we are of one; ``checks`` says what each misses: grounding, order in a swept value, agreement of rankings.
"""
