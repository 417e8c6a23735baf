"""Prompts, replies and final answers, for plugins that talk with models. It offers no component.

`prompts` writes what a model is asked, `asking` asks for an answer, `replies` reads what a model says, `finals` finds
each voter's final answer, `ties` breaks ties, `tokens` measures how probable replies were, `vectors` compares
embeddings, `grammar` turns regular expressions into grammars, `streaming` passes on replies while they are written,
`batches` is what a model offers whose provider answers requests later and for less.
"""
