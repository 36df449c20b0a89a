"""The search: from probabilities of the next piece to whole translations. It knows no model, only the two methods of `steps.Steppable`.

Read in this order: steps (what a search sees and gives), rules (what may come next), greedy, sampling, beam, then the beam's two
other ways to choose (groups, constraints), and ensemble, risk and guards.
"""
