"""Learners: from points and a random stream to a model, one at a time or many as a stack."""
