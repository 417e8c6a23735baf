"""What MALLM calls things, and what they are called here."""

from __future__ import annotations

from typing import Any

DEFAULTS: dict[str, Any] = {
    "input_json_file_path": "", "output_json_file_path": "", "task_instruction_prompt": "",
    "task_instruction_prompt_template": None, "endpoint_url": "https://api.openai.com/v1",
    "model_name": "gpt-3.5-turbo", "api_key": "-", "max_turns": 10, "skip_decision_making": False,
    "discussion_paradigm": "memory", "response_generator": "simple", "decision_protocol": "hybrid_consensus",
    "visible_turns_in_memory": 2, "debate_rounds": 2, "concurrent_api_requests": 100, "use_baseline": False,
    "use_chain_of_thought": True, "num_agents": 3, "num_neutral_agents": 0, "agent_generator": "expert",
    "agent_generators_list": [], "trust_remote_code": False, "num_samples": None, "hf_dataset_split": "test",
    "hf_token": None, "hf_dataset_version": None, "hf_dataset_input_column": None,
    "hf_dataset_reference_column": None, "hf_dataset_context_column": None, "use_ablation": False,
    "shuffle_input_samples": False, "all_agents_generate_first_draft": False, "all_agents_generate_draft": False,
    "voting_protocols_with_alterations": False, "calculate_persona_diversity": False,
    "challenge_final_results": False, "judge_intervention": None, "judge_metric": None, "judge_endpoint_url": None,
    "judge_model_name": None, "judge_api_key": "-", "judge_always_intervene": False,
    "all_agents_drafting": True, "policy": None}
"""Every setting of MALLM 1.0.5 with its default, and the two that only earlier releases had."""

TYPES: dict[str, Any] = {
    **{name: str | None if default is None else type(default) for name, default in DEFAULTS.items()},
    "num_samples": int | None, "hf_dataset_split": str | None, "agent_generators_list": list[str],
    "policy": Any, "feedback_only": bool, "repeats": int}
"""What a setting may be."""

INSTRUCTIONS = {
    "etpc": "Write a paraphrase of the text that uses all types of paraphrasing.",
    "wmt19_de_en": "Translate the German text into English.",
    "simple_ethical_questions": "Choose the best answer to the question.",
    "squad_v2": "Answer the question from the text. If the text does not say, write '[UNKNOWN]'.",
    "strategyqa": "Is the answer to the question A) Yes or B) No?",
    "xsum": "Sum up the text in one sentence.",
    "mmlu_pro": "Choose the right answer to the question.",
    "musr": "Solve the mystery. The solution has the suspect's full name.",
    "gpqa": "Choose the right answer to the question.",
    "math_lvl5": "Solve the problem. The solution is a number.",
    "ifeval": "Do as you are told.",
    "winogrande": "Which of A) and B) belongs into the blank _?",
    "ethics": "Would most people find this A) reasonable or B) unreasonable to say?",
    "aqua_rat": "Solve the problem and choose the right answer."}
"""What MALLM's templates ask for, in our own words, by their names."""

OLDER = {
    "data": "input_json_file_path", "out": "output_json_file_path", "instruction": "task_instruction_prompt",
    "instruction_prompt": "task_instruction_prompt",
    "instruction_prompt_template": "task_instruction_prompt_template", "model": "model_name",
    "max_concurrent_requests": "concurrent_api_requests", "context_length": "visible_turns_in_memory",
    "baseline": "use_baseline", "chain_of_thought": "use_chain_of_thought", "ablation": "use_ablation",
    "paradigm": "discussion_paradigm"}
"""Earlier spellings of settings."""

PARADIGMS = {name: f"mallm.{name}" for name in ("memory", "relay", "report", "debate", "collective_refinement")}
STYLES = {
    "simple": "styles.simple", "freetext": "styles.freetext", "splitfreetext": "styles.split",
    "critical": "styles.critical", "reasoning": "styles.reasoning", "json": "styles.simple"}
DECISIONS = {
    "majority_consensus": "consensus.majority", "supermajority_consensus": "consensus.supermajority",
    "unanimity_consensus": "consensus.unanimity", "hybrid_consensus": "consensus.hybrid",
    "simple_voting": "voting.simple", "voting": "voting.simple", "consensus_voting": "voting.simple",
    "approval_voting": "voting.approval", "approval": "voting.approval",
    "ranked_voting": "voting.ranked", "ranked": "voting.ranked",
    "cumulative_voting": "voting.cumulative", "cumulative": "voting.cumulative",
    "judge": "judge.synthesis", "summary": "judge.synthesis"}
PERSONAS = {"expert": "personas.expert", "ipip": "personas.ipip", "nopersona": "personas.none", "mock": "personas.none"}

ANSWERS = {
    "strategyqa": "answers.choice", "simpleethicalquestions": "answers.choice", "mmlu": "answers.choice",
    "gpqa": "answers.choice", "winogrande": "answers.choice", "aquarat": "answers.choice", "bbq": "answers.choice",
    "ethics": "answers.choice",
    "squad": "answers.text", "musr": "answers.choice", "gsm8k": "answers.number", "math": "answers.math",
    "etpc": "answers.free", "europarl": "answers.free", "wmt": "answers.free", "xsum": "answers.free",
    "multinews": "answers.free", "ifeval": "answers.free"}
"""Answer format by a part of the name of the task's template or its data set."""
METRICS = {
    "answers.choice": ["qa.accuracy"], "answers.number": ["qa.accuracy"], "answers.math": ["qa.accuracy"],
    "answers.text": ["qa.exact_match", "qa.f1"],
    "answers.free": ["text.rouge", "text.bleu", "text.meteor", "text.bertscore"]}

LOST = {
    "trust_remote_code": "data sets never run their own code here",
    "hf_token": "not copied; set the environment variable HF_TOKEN",
    "judge_metric": "a model compares the answers, not a metric",
    "policy": "a setting of early releases that has no counterpart"}
"""Settings that are left out when they are set, and why."""
