"""The English words of the concepts that frames are made of (frames.py has the notation of an entry).

A concept is what a word does in a sentence that turns a model against its user; many words of a concept are also
used by honest tools. It is the combination (frame_rules.py) that tells.
"""

from __future__ import annotations

from harness.analyzers.definitions.concepts_calls import CALL_CONCEPTS

CONCEPTS: dict[str, str] = {
    "you": "=you =yourself",
    "your": "=your =yours",
    "model": "=assistant model ai llm agent chatbot claude chatgpt gpt copilot gemini",
    "=maker =makers": (
        "=developer =developers =operator =operators =provider =providers =vendor =vendors =creator =creators "
        "=maker =makers openai anthropic =administrator =administrators admin =deployer =deployers"
    ),
    "user": (
        "user human person =people =customer client owner =operator =operators =anyone =anybody =somebody "
        "=someone =them =they =him =her =everyone reader =he =she"
    ),
    "must": (
        "must should shall have_to need_to has_to ought_to require =always necessary is_to are_to be_sure "
        "make_sure mandatory =please will"
    ),
    "be": "=be =being =been =is =are =was =were",
    "not": (
        "not never without avoid refrain_from no_need =cannot =no nor neither stop cease no_longer =nothing "
        "=nobody refuse decline"
    ),
    "every": "all any every each whole entire full complete everything anything whatever whichever exact",
    "this": "=this =it =that =these =those =its =their =them",
    "cancel_strong": (
        "ignore disregard forget neglect abandon override overrule supersede circumvent bypass evade unlearn "
        "outrank trump take_the_place take_their_place no_attention no_heed no_notice disobey defy set_aside "
        "put_aside lay_aside leave_aside violate countermand sidestep take_precedence =precedence priority "
        "prevail"
    ),
    "cancel_loose": (
        "overlook discard drop ditch scrap erase wipe reset purge replace displace supplant overwrite disable "
        "deactivate turn_off switch_off turn_them_off turn_it_off shut_off suspend revoke rescind repeal waive "
        "lift void nullify invalidate cancel annul dismiss throw_out throw_away toss let_go_of do_away_with "
        "get_rid_of free_of free_from freed release exempt relieve excuse unbound unbind loosen relax break "
        "break_free work_around get_around deviate depart_from go_against outdate obsolete null inactive expire "
        "stale moot irrelevant withdraw retire lapse remove delete skip neutralize unlock end pause stop over "
        "untrue wrong invalid in_place_of instead_of rather_than ranks_above rank_above come_before above_all "
        "substitute =terminate"
    ),
    "not_bind": (
        "bind apply count matter valid hold govern limit cover restrict relevant effect force concern active "
        "constrain relevant needed"
    ),
    "obey": "follow obey comply adhere respect honor honour heed observe apply listen stick_to abide conform enforce",
    "orders": (
        "instruction =directive =directives =guideline =guidelines guardrail guidance =programming =orders "
        "command =rules =rule policy restriction constraint =safeguard =safeguards =training =alignment principle "
        "limitation boundary ethic mandate prompt system_message safety precaution =limits prohibition "
        "safety_filter content_filter =moderation safety_measure protocol =conditioning persona filter control "
        "preamble safety_check content_rule"
    ),
    "orders_core": (
        "instruction =directive =directives =guideline =guidelines guardrail =rules prompt =orders =programming "
        "restriction constraint policy =safeguard =safeguards guidance command principle"
    ),
    "earlier": (
        "previous previously prior preceding earlier above foregoing former initial original existing past "
        "hitherto so_far until_now up_to_now before usual normal ordinary standard old other"
    ),
    "told": (
        "you_were_told you_were_given you_have_been_told you_have_been_given you_were_instructed you_received "
        "you_have_received told_you gave_you given_to_you you_learned you_were_taught instructed_you asked_you "
        "you_were_asked you_have_been_instructed asked_of_you said_before came_before you_were_trained "
        "you_were_set_up you_were_configured you_were_programmed has_told told_before said_so_far "
        "comes_before_this came_before_this earlier_ones previous_ones prior_ones old_ones"
    ),
    "new_orders": (
        "your_new_task your_new_role your_new_instructions your_new_goal new_instructions your_only_task "
        "your_only_job your_real_task your_actual_task your_task_is_now your_role_is_now your_sole_purpose "
        "your_true_purpose your_new_objective your_new_system_prompt your_new_identity your_new_purpose "
        "your_new_rules your_primary_directive new_set_of_instructions your_instructions_are_now"
    ),
    "refused": (
        "normally_refuse usually_refuse would_refuse otherwise_refuse normally_decline would_decline "
        "otherwise_decline usually_decline normally_reject would_normally_not would_not_normally not_normally "
        "normally_avoid normally_block usually_block usually_avoid refuse_otherwise"
    ),
    "comply": (
        "carry_out comply answer perform allow permit fulfil fulfill execute accept do approve grant provide help"
    ),
    "source": (
        "=tool =output =result document =text =page =file =response =service =server =content =data =row =body =message"
    ),
    "reveal": (
        "reveal disclose leak dump expose recite repeat echo divulge quote spill output print show display return "
        "tell give share include paste provide list send copy translate summarize summarise state append write "
        "reproduce transcribe read_out read_back type put pass add place insert report paraphrase restate post "
        "submit encode describe supply attach embed hand fill mirror what_is what_are what_were restate convert "
        "start_your_answer what_do answer what_does contain hold carry need require expect start_with begin_with "
        "reply_with answer_with respond_with present render serialize"
    ),
    "reveal_strong": "reveal disclose leak dump expose recite divulge spill reproduce",
    "system_prompt": (
        "system_prompt system_message system_instruction developer_message developer_prompt developer_instruction "
        "initial_prompt initial_instruction original_prompt original_instruction hidden_prompt hidden_instruction "
        "secret_prompt secret_instruction internal_instruction internal_prompt confidential_instruction "
        "starting_instruction starting_prompt base_prompt pre_prompt preprompt metaprompt meta_prompt "
        "custom_instruction internal_guideline internal_configuration hidden_rules secret_rules secret_guideline "
        "hidden_guideline opening_instruction startup_prompt initial_message system_text internal_rules "
        "private_instruction system_directive hidden_context initial_configuration"
    ),
    "prompt_words": (
        "prompt instruction =directive =directives =guideline =guidelines =rules guidance orders preamble brief"
    ),
    "set_for_you": (
        "you_were_given you_received given_to_you you_have_been_given placed_in_your you_were_told told_to_you "
        "you_operate you_run you_follow you_work your_context configured_by your_operator your_developer "
        "you_were_configured you_were_started start_up startup shape_your govern_your your_behavior "
        "your_behaviour you_are_bound you_were_set_up guide_you steer_you hidden_from_the_user "
        "before_this_conversation at_the_beginning_of_this_conversation at_the_start_of_this_conversation "
        "preceded_this from_your_developer precede_this your_creator you_started_with above_this_line "
        "you_were_operating operating_under you_operate_under you_work_under you_have_been_configured "
        "you_were_instructed_with your_context_window given_you you_have_been_told you_are_following "
        "you_must_follow you_currently_follow precede_this_conversation preceding_this_conversation "
        "came_before_this_conversation what_you_were_told you_were_initialized your_configuration "
        "you_were_initialized_with you_were_started_with you_were_set_up_with you_were_loaded_with "
        "you_were_instructed you_are_given you_began_with"
    ),
    "text_above": (
        "everything_above text_above words_above all_above content_above above_this_line everything_before "
        "above_this_message everything_you_were_told lines_above everything_that_came_before text_before "
        "text_that_precedes everything_that_precedes everything_preceding everything_you_see_above text_preceding "
        "message_above instruction_above everything_written_above top_of_the_conversation "
        "top_of_this_conversation start_of_your_context beginning_of_your_context top_of_your_context "
        "first_message start_of_this_conversation beginning_of_this_conversation role_system system_role "
        "words_of_your_context lines_of_your_context"
    ),
    "verbatim": (
        "verbatim word_for_word in_full =fully exactly_as literally full entire whole complete unabridged "
        "unredacted exact_wording without_changes entirely unaltered completely copy exact"
    ),
    "hard_secret": (
        "dot_ssh id_rsa id_ed25519 id_ecdsa dot_aws dot_env dot_netrc dot_npmrc dot_pypirc dot_kube dot_gnupg "
        "dot_docker dot_cursor dot_git_credentials dot_bash_history dot_zsh_history /_etc_/_passwd /_etc_/_shadow "
        "keychain login_data mcp_dot_json wallet_dot_dat claude_desktop_config environment_variable "
        "process_dot_env conversation_history chat_history message_history browsing_history browser_history "
        "chat_log conversation_so_far entire_conversation whole_conversation full_conversation "
        "complete_conversation conversation_transcript chat_transcript full_transcript shell_history "
        "command_history session_cookie browser_cookie cookie_jar saved_password stored_password password_manager "
        "openai_api_key anthropic_api_key aws_secret aws_access_key github_token secret_access_key gh_token "
        "npm_token stored_credentials system_prompt home_directory dot_pgpass dot_bashrc dot_config "
        "password_store credentials_file database_password whole_chat entire_chat full_chat conversation_text "
        "whole_history entire_history full_history all_previous_message every_previous_message "
        "previous_tool_result earlier_tool_result api_keys_found env_vars"
    ),
    "soft_secret": (
        "api_key token credential password passphrase secret cookie session_id login access_key secret_key "
        "connection_string otp pin_code certificate personal_data private_data sensitive_data =conversation "
        "=conversations confidential_information sensitive_information sensitive_file private_file private_keys"
    ),
    "whose": (
        "all any every each whole entire full complete everything found visible stored saved of_the_user "
        "of_the_host of_the_machine of_the_operator host machine workspace repository environment encounter "
        "come_across you_have you_find you_can_find you_see available local currently memory disk =their =users "
        "other_tools you_know discovered cached browser =developer =developers"
    ),
    "transfer_strong": (
        "send post upload transmit forward submit deliver relay ship dispatch email mail exfiltrate leak siphon "
        "smuggle beacon publish redirect bcc cc push sync mirror stream transfer convey =sent route curl wget"
    ),
    "transfer": (
        "share report copy paste include attach append add embed insert put place pass hand give provide supply "
        "output return write store encode echo pipe expose disclose reveal quote incorporate enclose fill "
        "populate record print set use =hidden hide base64 concatenate smuggle carry repeat summarize list tuck "
        "slip type =given sneak render interpolate"
    ),
    "first_tool": "first_tool default_tool first_call default_for_every your_default first_thing_you_do",
    "begin": "begin start commence initiate",
    "guard_kind": "content safety ethical ethic moral usage =moderation =alignment built-in security refusal harm",
    "ignore_words": "ignore disregard forget neglect abandon bypass circumvent evade unlearn no_attention set_aside",
    "system_word": "system =developer =developers safety current default",
    "cancel_it": (
        "turn_them_off turn_it_off switch_them_off leave_them_off set_them_aside put_them_aside shut_them_off "
        "switch_it_off get_around_it get_around_them work_around_it work_around_them pay_them_no leave_them_aside "
        "leave_them_behind put_it_aside set_it_aside let_them_go put_those_aside set_those_aside set_that_aside"
    ),
    "report_out": "share report copy attach append hand disclose include reveal echo forward",
    "steal": "exfiltrate leak siphon smuggle harvest steal",
    "collect": (
        "read open cat load access fetch get retrieve collect harvest gather grab find locate extract dump "
        "look_up search scan take pull list enumerate copy look_for obtain print pick_up read_file capture"
    ),
    "drop_box": (
        "webhook collector pastebin ngrok =attacker third_party our_server our_backend our_endpoint "
        "external_server remote_server remote_host external_endpoint external_service our_api remote_endpoint "
        "telegram discord our_team the_vendor our_service server_of mailbox this_url callback_url the_url"
    ),
    "carrier": (
        "this_parameter this_field this_argument this_value first_argument second_argument last_argument sidenote "
        "side_note parameter argument query_string query_parameter field metadata caption comment body payload "
        "footer header note =notes scratchpad subject signature alt_text commit_message url_parameter feedback "
        "context trace =memo tag description =here each_call every_call every_request each_request next_call "
        "other_tool another_tool request tool_call this_tool the_call user_agent"
    ),
    "content": "content text value data output copy body string material",
    "authenticates": "authorization authenticate login_form sign_in authentication oauth bearer",
    "everything_said": (
        "=message =messages =mail =mails =emails =answer =answers =response =responses =prompt =prompts =query "
        "=queries =conversation =conversations =question =questions =reply =replies =document =documents =file "
        "=files =email =input =inputs =secrets"
    ),
    "payee": (
        "recipient destination payee account beneficiary wallet_address address phone_number =receiver addressee "
        "iban number"
    ),
    "swap": "change replace swap substitute redirect switch alter overwrite rewrite set",
    "forbid": (
        "do_not never must_not should_not shall_not may_not need_not will_not without avoid refrain_from no_need "
        "not_to stop not_have_to nothing_to =nobody under_no_circumstance not_necessary no_reason_to neither "
        "nobody no_one"
    ),
    "let_know": (
        "tell mention =inform =informing =informed notify reveal disclose alert warn let_know acknowledge "
        "announce admit show display bring_up bring_this_up discuss talk_about report log confirm ask advise "
        "speak explain say apprise point_out draw_attention describe list note comment prompt let indicate hint "
        "consult"
    ),
    "subject": "=this =it =that =these =those =step =call =action =what =anything =anyone =anybody",
    "secrecy_word": (
        "unaware in_the_dark oblivious none_the_wiser stay_silent remain_silent keep_silent keep_quiet stay_quiet "
        "between_us our_secret unsuspecting not_suspect without_their_knowledge say_nothing behind_the_scenes "
        "unnoticed undetected go_unnoticed out_of_sight keep_mum unbeknownst behind_the_users_back "
        "nobodys_business between_you no_mention not_a_word not_breathe_a_word let_on without_telling unremarked "
        "make_no_reference make_no_mention proceed_without_asking go_ahead_without"
    ),
    "conceal": (
        "hide conceal keep withhold omit leave_out suppress mask obscure cover_up disguise obfuscate cloak "
        "exclude remove_from_the_summary"
    ),
    "from": "=from =out =away =off =so",
    "secret_state": "secret hidden confidential invisible private quiet concealed",
    "perceive": (
        "know see aware notice find_out realize realise learn told informed notified suspect discover spot "
        "understand shown hear knowledge knowing seeing noticing consent asking permission approval awareness "
        "alerted warned"
    ),
    "sly": (
        "silently covertly quietly stealthily discreetly =secretly surreptitiously invisibly clandestinely "
        "unobtrusively in_secret in_the_background"
    ),
    "act": (
        "read send collect upload call run execute forward copy include add append access invoke attach transmit "
        "change replace insert store perform do carry_out follow modify delete write save record pass fetch "
        "download install create edit open submit disable make"
    ),
    "pretend": (
        "pretend act_as_though act_as_if behave_as_if as_though_nothing as_if_nothing claim_that make_it_look "
        "give_the_impression make_it_appear claim_to answer_as_if respond_as_if as_if_the_tool as_if_it_had "
        "say_that_nothing"
    ),
    **CALL_CONCEPTS,
}
