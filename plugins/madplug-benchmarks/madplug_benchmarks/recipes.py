"""The recipes: where each benchmark is, what its columns mean, how it is scored, and its licence."""

from __future__ import annotations

from madplug_benchmarks import recipe as r
from madplug_benchmarks.recipe import Recipe

BBH = ("geometric_shapes", "logical_deduction_three_objects", "logical_deduction_five_objects",
       "logical_deduction_seven_objects")
MUSR = ("murder_mysteries", "object_placements", "team_allocation")
SEVERAL = {"use": "answers.choice", "several": True}
UNKNOWN = {"use": "answers.text", "unknown": True}
SUMMARISE = "Summarise the following text in one sentence."
REPHRASE = "Rephrase the following sentence, making changes of the kinds that are named with it. Keep its meaning."
GAP = "Which option belongs in place of the underscore?"
CHOOSE = "Answer the question by choosing one of the options."
CHOOSE_SEVERAL = "Answer the question by choosing all options that are right."
STORY = "Read the story and answer the question about it by choosing one of the options."
DECIDE = "Answer the question with yes or no."
PASSAGE = "Answer the question with words from the passage, or say that the passage does not give the answer."
SOLVE = "Solve the problem. The answer is a number."
PROVE = "Solve the mathematical problem. The answer is an expression."
FIGURE = "Look at the figure and solve the mathematical problem."
LOOK = "Look at the photograph and answer the question about it."
MAA = "the problems are the Mathematical Association of America's; the hub's tags are the repackagers' own"
AIME = "AIME is the American Invitational Mathematics Examination; every answer is a whole number from 0 to 999."
UNSEEN = "The layout on the hub could not be verified: set config and split if it differs, or read its files with path."

RECIPES = (
    Recipe("mmlu", "MMLU: knowledge questions in 57 subjects, four choices.", "cais/mmlu",
           ({"question": "question", "choices": "choices", "reference": "answer", "group": "subject"},),
           "answers.choice", "qa.accuracy", "MIT", "Hendrycks et al. 2021 (MMLU)",
           config="all", reference_as="index", subset_of="column", instruction=CHOOSE),
    Recipe("mmlu_pro", "MMLU-Pro: harder questions in 14 categories, up to ten choices.", "TIGER-Lab/MMLU-Pro",
           ({"id": "question_id", "question": "question", "choices": "options", "reference": "answer",
             "group": "category"},),
           "answers.choice", "qa.accuracy", "MIT on the hub, Apache-2.0 in the authors' repository",
           "Wang et al. 2024 (MMLU-Pro)", config="default", reference_as="letter", subset_of="column",
           instruction=CHOOSE),
    Recipe("gpqa", "GPQA: questions for experts in biology, physics and chemistry, four choices.\n\n"
           "Gated: accept the terms on the hub and set HF_TOKEN; do not publish examples. The choices are shuffled, by "
           "`choice_seed` and the row's id.", "Idavidrein/gpqa",
           ({"id": "Record ID", "question": "Question", "reference": "Correct Answer", "group": "High-level domain",
             "choices": ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")},),
           "answers.choice", "qa.accuracy", "CC BY 4.0", "Rein et al. 2023 (GPQA)", split="train",
           reference_as="letter", subset_of="config", subset="gpqa_main", choice_seed=True, change=r.shuffled,
           instruction=CHOOSE, subsets=("gpqa_main", "gpqa_diamond", "gpqa_extended")),
    Recipe("strategyqa", "StrategyQA: yes-or-no questions that take several steps of knowledge.", "ChilleD/StrategyQA",
           ({"id": "qid", "question": "question", "reference": "answer"},),
           "answers.yesno", "qa.accuracy", "MIT", "Geva et al. 2021 (StrategyQA)", change=r.yes_no, instruction=DECIDE),
    Recipe("musr", "MuSR: reasoning over long stories: murder mysteries, object placements, team allocation.",
           "TAUR-Lab/MuSR",
           ({"context": "narrative", "question": "question", "choices": "choices", "reference": "answer_index"},),
           "answers.choice", "qa.accuracy; with answers = \"answers.free\" qa.includes",
           "MIT in the authors' repository", "Sprague et al. 2024 (MuSR)", config="default", reference_as="index",
           split=MUSR[0], subset_of="split", subsets=MUSR, subset=MUSR[0], instruction=STORY),
    Recipe("quality", "QuALITY: hard questions about long stories, with the right answer and the best wrong one.\n\n"
           "For debates for oversight: hide the story from the judge with the extension `visibility.hidden`. The "
           "questions are those of Khan et al. 2024: Gutenberg stories; every annotator with time for the story was "
           "right and found one right answer, at most half of those who skimmed it were, and on average it took more "
           "than a sentence or two; `per_group` of a story. The wrong answer is the one that annotators named "
           "most often as the best distractor. The layout is that of the hub's copy, a row for each question. The "
           "stories of Michael et al. 2023 are not left out.", "tasksource/QuALITY",
           ({"id": "question_unique_id", "context": "article", "question": "question", "choices": "options",
             "reference": ("gold_label", "validation"), "group": "title"},),
           "answers.choice", "oversight.judged, qa.accuracy", "CC BY 4.0; the stories are in the public domain",
           "Pang et al. 2022 (QuALITY); Khan et al. 2024 (the questions)", split="train+validation",
           reference_as="letter", change=r.right_and_distractor, keep=r.needs_its_story, choice_seed=True, per_group=1,
           instruction=CHOOSE),
    Recipe("squad_v2", "SQuAD 2.0: questions answered by a span of a passage, or not at all.\n\n"
           "A question without an answer has no references.", "rajpurkar/squad_v2",
           ({"id": "id", "context": "context", "question": "question", "reference": "answers.text",
             "group": "title"},),
           UNKNOWN, "qa.f1, qa.exact_match and qa.answerability", "CC BY-SA 4.0",
           "Rajpurkar et al. 2018 (SQuAD 2.0)", config="squad_v2", split="validation", change=r.numbered_id,
           instruction=PASSAGE),
    Recipe("winogrande", "WinoGrande: which of two options fills the gap.", "allenai/winogrande",
           ({"question": "sentence", "choices": ("option1", "option2"), "reference": "answer"},),
           "answers.choice", "qa.accuracy", "CC BY", "Sakaguchi et al. 2020 (WinoGrande)", split="validation",
           instruction=GAP, reference_as="position", subset_of="config", subset="winogrande_xl",
           subsets=tuple(f"winogrande_{size}" for size in ("xs", "s", "m", "l", "xl"))),
    Recipe("gsm8k", "GSM8K: grade-school word problems.", "openai/gsm8k",
           ({"question": "question", "reference": "answer"},),
           "answers.number", "qa.accuracy", "MIT", "Cobbe et al. 2021 (GSM8K)", config="main", change=r.final_number,
           instruction=SOLVE),
    Recipe("gsm_ranges", "GSM-Ranges: GSM8K with numbers of growing size.\n\n" + UNSEEN, "guactastesgood/GSM-Ranges",
           ({"question": "question", "reference": "answer"},),
           "answers.number", "qa.accuracy", "none stated", "Shrestha et al. 2025 (GSM-Ranges)", change=r.final_number,
           subset_of="config", subsets=("original", *(f"level{i}" for i in range(1, 7))), instruction=SOLVE),
    Recipe("math500", "MATH-500: competition mathematics, answers in LaTeX.", "HuggingFaceH4/MATH-500",
           ({"id": "unique_id", "question": "problem", "reference": "answer", "group": "subject"},),
           "answers.math", "qa.accuracy; equality = \"symbolic\" in [answers] compares values", "MIT",
           "Lightman et al. 2023; Hendrycks et al. 2021 (MATH)", config="default", subset_of="column",
           instruction=PROVE),
    Recipe("aime_2024", "AIME 2024: 30 competition problems.\n\n" + AIME, "HuggingFaceH4/aime_2024",
           ({"id": "id", "question": "problem", "reference": "answer"},
            {"id": "ID", "question": "Problem", "reference": "Answer"}),
           "answers.number", "qa.accuracy", MAA, "MAA 2024 (AIME)", config="default", split="train", change=r.integer,
           instruction=SOLVE),
    Recipe("aime_2025", "AIME 2025: 30 competition problems.\n\n" + AIME, "math-ai/aime25",
           ({"id": "id", "question": "problem", "reference": "answer"}, {"question": "problem", "reference": "answer"},
            {"question": "question", "reference": "answer"}),
           "answers.number", "qa.accuracy", MAA, "MAA 2025 (AIME)", change=r.integer, instruction=SOLVE),
    Recipe("bbh", "BIG-Bench Hard: the tasks with options, such as logical deduction.", "SaylorTwift/bbh",
           ({"question": "input", "reference": "target"},),
           "answers.choice", "qa.accuracy", "MIT", "Suzgun et al. 2022 (BIG-Bench Hard)", subset_of="config",
           subset=BBH[1], change=r.option_block, instruction=CHOOSE),
    Recipe("aicrypto", "AICrypto: multiple choice on cryptography; several options may be right.\n\n" + UNSEEN,
           "yuuwwang/aicrypto",
           ({"id": "id", "question": "question", "choices": "choice", "reference": "answer", "group": "label"},),
           SEVERAL, "qa.accuracy (the exact set)", "none stated", "Wang et al. 2025 (AICrypto)",
           reference_as="verbatim", subset_of="column", change=r.letter_set,
           instruction=CHOOSE_SEVERAL),
    Recipe("etpc", "ETPC: paraphrases of given kinds.\n\n"
           "Pairs that are not paraphrases are left out. The hub's copy is a program, so its converted rows are read.",
           "jpwahle/etpc",
           ({"id": "idx", "question": "sentence1", "context": "paraphrase_types", "reference": "sentence2"},),
           "answers.free", "text.rouge, text.bleu, text.meteor, text.bertscore", "unknown",
           "Kovatchev et al. 2018 (ETPC)", split="train", revision="refs/convert/parquet", instruction=REPHRASE,
           change=r.paraphrase,
           keep=lambda row, subset: str(row.get("etpc_label")) == "1" and bool(row.get("sentence2"))),
    Recipe("xsum", "XSum: one-sentence summaries of news articles.", "EdinburghNLP/xsum",
           ({"id": "id", "question": "document", "reference": "summary"},
            {"id": "gem_id", "question": "document", "reference": "target"},
            {"question": "article", "reference": "summary"},
            {"id": "paper_id", "question": "source", "reference": "target"}),
           "answers.free", "text.rouge", "unknown; the articles are the BBC's", "Narayan et al. 2018 (XSum)",
           instruction=SUMMARISE, change=r.joined),
    Recipe("simple_ethical_questions", "Simple ethical questions of BIG-bench: four choices.", "tasksource/bigbench",
           ({"question": "inputs", "choices": "multiple_choice_targets", "reference": "multiple_choice_scores"},),
           "answers.choice", "qa.accuracy", "Apache-2.0", "Srivastava et al. 2022 (BIG-bench)",
           config="simple_ethical_questions", split="train+validation", reference_as="index",
           change=r.scored_choices, instruction=CHOOSE),
    Recipe("math_vision", "MATH-Vision: competition mathematics with a figure.\n\n"
           "About half of the questions have options, and the letter is then the answer; the subsets `choice` and "
           "`open` take one kind only.", "MathLLMs/MathVision",
           tuple({"id": "id", "question": "question", "choices": "options", "images": image, "reference": "answer",
                  "group": "subject"} for image in ("decoded_image", "image")),
           {"use": "answers.mixed", "other": "answers.math"}, "qa.accuracy", "MIT", "Wang et al. 2024 (MATH-Vision)",
           split="testmini",
           reference_as="letter", change=r.open_or_choice, subset_of="rows", subsets=("choice", "open"),
           by_subset={"choice": "answers.choice", "open": "answers.math"}, instruction=FIGURE,
           keep=lambda row, subset: subset is None or (subset == "choice") == bool(row.get("options"))),
    Recipe("real_world_qa", "RealWorldQA: questions about photographs.\n\n"
           "Options that a question lists become choices, and its sentence about answering directly is left out. The "
           "subset `choice` takes the questions with options, `open` the others, and "
           "`verifiable` those with options, yes or no, or a number for an answer.", "xai-org/RealworldQA",
           ({"question": "question", "images": "image", "reference": "answer"},),
           "answers.mixed", "qa.accuracy", "CC BY-ND 4.0", "xAI 2024 (RealWorldQA)", instruction=LOOK,
           change=r.listed_options, keep=r.photograph_kind, subset_of="rows", subsets=("choice", "open", "verifiable"),
           by_subset={"choice": "answers.choice", "open": "answers.text"}),
)
