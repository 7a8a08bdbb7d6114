"""What others measure unlearning by, set beside Q: the mathematics alone, numpy and scipy.special alone.

``ic`` (interclass confusion), ``mia`` (attack AUC and accuracy on one split, over the swap, offset by Retrain) and
``distances`` (to a retrained model) are the scores; ``estimates`` says how sure we are of one, ``checks`` what each
misses: grounding, order in a swept value, agreement of rankings. None of them is Q.
"""
