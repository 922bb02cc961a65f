"""Random tables, kernels, likelihoods, files, texts, commands and kills, and the laws that hold for all of them.

Everything goes through the public face of the library, so that this stays when the inside is rebuilt. A *kind*
(``kinds``) draws a case from a seed and says whether a law was broken; ``runner`` tries as many as the time allows. A
case that breaks a law is made smaller (``shrinking``) and printed as a program (``programs``). See docs/reliability.md.
"""
