"""The second half of the words in concepts.py: calls and their order, tools, refusal, roles, limits, kinds of text."""

from __future__ import annotations

CALL_CONCEPTS: dict[str, str] = {
    "before": (
        "before prior_to ahead_of until unless first earlier_than at_the_beginning at_the_start at_start "
        "beforehand as_soon_as priority_over precedence_over preference_to preferred_over instead_of rather_than "
        "in_place_of"
    ),
    "call": (
        "call use invoke run execute trigger =called =used consult query activate launch start go_through perform "
        "=runs =calling =invoking"
    ),
    "any_other": (
        "any_other all_other every_other other_tool another_tool any_tool every_tool all_tools each_tool "
        "any_of_the anything_else anything everything_else anything_other a_tool remaining_tool rest_of_the_tool "
        "competing other_server any_action any_task any_step any_operation any_request any_function any_response "
        "any_answer =answering responding replying any_reply every_answer every_response every_action "
        "every_message user_message each_response each_answer every_reply each_reply any_user every_user "
        "any_message answer_the_user respond_to reply_to =respond =reply built-in built_in native_tool "
        "alternative_tool similar_tool remaining_server different_tool each_message existing_tool processing_any "
        "handling_any you_do_anything you_answer you_respond you_reply the_others others every_task"
    ),
    "other_tools": (
        "any_other_tool all_other_tool every_other_tool other_tool another_tool competing other_server "
        "built-in_tool built_in_tool native_tool alternative_tool similar_tool remaining_server remaining_tool "
        "different_tool existing_tool rest_of_the_tool rival default_tool other_search any_other "
        "other_server_tool tools_of_other"
    ),
    "each_turn": (
        "every_message each_message every_turn each_turn every_conversation each_conversation every_request "
        "each_request every_session every_prompt each_prompt every_response each_response every_answer "
        "each_answer every_reply every_interaction each_interaction every_question each_question every_query "
        "every_task each_task no_matter regardless_of whatever_the_user each_user every_user even_if_the_user "
        "start_of_conversation beginning_of_conversation start_of_the_conversation beginning_of_the_conversation "
        "every_single every_chat each_chat start_of_every start_of_each beginning_of_each beginning_of_every "
        "whenever_the_user"
    ),
    "prefer": "prefer favor favour choose prioritize prioritise preference preferred",
    "bad_tool": (
        "forbidden unsafe broken deprecated unreliable insecure blocked prohibited disallowed untrusted "
        "unavailable outdated fail inaccurate not_work off_limits wrong incorrect worse inferior less_reliable "
        "less_accurate"
    ),
    "become": (
        "you_are act_as act_like pretend become respond_as behave_as imagine roleplay role_play persona play_the "
        "simulate assume_the_role adopt take_on speak_as =you switch_to enter act write_as answer_as reply_as "
        "talk_as character roleplaying mode alter_ego"
    ),
    "unbound": (
        "unrestricted unfiltered uncensored jailbroken amoral unbound unaligned unlimited unshackled "
        "do_anything_now dan_mode =dan unchained lawless limitless evil never_refuse cannot_refuse never_say_no "
        "anything_goes god_mode jailbreak unmoderated rule-free uninhibited say_no decline_nothing never_decline "
        "answer_everything answers_anything sudo_mode evil_twin evil_mode alter_ego stand_for no_refusal unhinged "
        "say_anything unlocked liberated untethered opposite_mode immoral unethical illegal_content "
        "disallowed_content harmful_content"
    ),
    "no_limit": (
        "no_rule no_restriction no_limit no_limitation no_guideline no_filter no_constraint no_moral no_ethic "
        "no_ethical no_moral no_boundary no_safety no_censorship without_restriction without_rule without_limit "
        "without_filter without_guideline without_constraint without_ethical without_moral without_safety "
        "without_censorship free_of_moral free_of_restriction free_from_restriction free_of_rule free_of_all "
        "free_from_all free_of_any without_any_restriction without_any_rule without_any_limit without_any_filter "
        "no_content not_bound no_longer_bound free_of_ethical free_from_moral free_from_ethical no_inhibition "
        "without_refusing"
    ),
    "model_noun": (
        "system_prompt system_message safety_policy content_policy safety_guideline safety_training content_rule "
        "safety_rule usage_policy guardrail moderation_rule system_instruction ethical_guideline"
    ),
    "gone": (
        "expire void invalid obsolete cancel suspend waive supersede no_effect never_been revoke lapse withdraw "
        "irrelevant outdated ignore disregard nullify moot inactive disable lift retract stale abolish"
    ),
    "conflict": "conflict contradict contradiction disagree inconsistent differ clash =contrary odds",
    "win": (
        "win prevail come_first follow obey =precedence outrank last_word priority stronger choose go_with "
        "do_this decide"
    ),
    "rank": "outrank come_first come_before =precedence priority prevail trump beat stand_above supersede second",
    "goal": "goal objective mission purpose role task identity job priority",
    "only": "only solely exclusively just",
    "counts": "count apply matter valid bind",
    "key_like": (
        "private_key ssh_key seed_phrase recovery_phrase mnemonic_phrase wallet_key passport_number credit_card "
        "card_number social_security bank_detail recovery_code backup_code one_time_code signing_key "
        "master_password contact_list address_book private_message private_document database_url"
    ),
    "talk": (
        "the_conversation this_conversation the_chat this_chat previous_message earlier_message our_conversation "
        "users_message your_answer your_reply your_response"
    ),
    "field": (
        "parameter argument field sidenote query_string this_parameter user-agent subdomain domain_name "
        "markdown_image user_agent host_name"
    ),
    "mention": "mention reference trace hint word",
    "leave": "leave keep strip remove drop",
    "nobody": "=nobody =noone no_one =none",
    "each_word": "every each whenever each_time every_time every_single",
    "start_word": "start beginning top outset",
    "turn": (
        "message turn conversation request session prompt response answer reply question query chat task "
        "interaction input =asked =asks =says dialogue"
    ),
    "refusal": "refusal refuse decline",
    "off": "=off disabled removed impossible not_possible forbidden",
    "user_said": (
        "the_user_said user_says user_asked user_asks user_wants user_requested the_user_told the_user_want "
        "user_ask user_told has_said have_said asked_for"
    ),
    "the_thing": (
        "the_content the_text the_value the_result the_output the_data the_key the_file full_text its_content"
    ),
    "secret_file": (
        "dot_ssh id_rsa id_ed25519 id_ecdsa dot_aws dot_env dot_netrc dot_npmrc dot_pypirc dot_kube dot_gnupg "
        "dot_git_credentials mcp_dot_json wallet_dot_dat /_etc_/_passwd /_etc_/_shadow "
        "conversation_so_far other_tool_returned whatever_other_tool conversation_history chat_history "
        "browser_cookie"
    ),
    "encoded": "base64 content text copy value verbatim full complete entire hash dump whole",
    "core": (
        "instruction =guideline =guidelines guardrail =directive =directives =orders guidance =programming "
        "=alignment ethic system_message system_prompt safety_rule safety_policy safety_filter safety_measure "
        "content_policy safety_training principle mandate conditioning"
    ),
    "despite": (
        "regardless_of despite in_spite_of notwithstanding even_if no_matter even_when irrespective_of contrary_to"
    ),
    "treat": "treat regard consider accept handle interpret trust take",
    "as_system": (
        "as_system as_instruction as_command as_directive from_the_system system_level system-level as_a_system "
        "as_your_instruction as_a_developer as_the_user as_if_the_user "
        "as_an_instruction as_order as_law"
    ),
    # Of data, that it is right; of words, that they are to be obeyed: what else the sentence speaks about decides.
    "as_reliable": "as_trusted as_authoritative as_binding as_the_authority",
    "prompt_own": (
        "instruction =guideline =guidelines =directive =directives prompt preamble context_window configuration "
        "persona =rules constraint policy =orders setup initialization"
    ),
    "toward": "=to =into =onto =via =through =against =towards",
    "deny": "refuse decline disclaimer moralize lecture",
    "it_them": "=it =them =those =these",
    "briefed": (
        "you_were_told you_were_instructed you_were_configured you_were_set_up you_have_been_told "
        "you_have_been_instructed you_have_been_configured you_were_programmed you_were_initialized "
        "you_operate_under placed_in_your your_context_window configured_by_your text_that_precedes "
        "precede_this_conversation came_before_this_conversation set_by_your given_by_your"
    ),
    "prompt_kind": (
        "system developer initial original hidden secret internal confidential starting base private opening "
        "startup underlying core master root preset pre-set built-in background operating standing embedded "
        "baseline foundational"
    ),
    "displace": "instead_of rather_than in_place_of",
    "unconditional": (
        "without_question unconditionally blindly no_matter_what to_the_letter without_hesitation "
        "without_objection unquestioningly unconditional"
    ),
    "nothing": "nothing",
}
