"""Words of other languages for the same concepts: German, French, Spanish, Italian, Portuguese, Russian, Chinese
and Japanese.

Latin words are written without accents, as normalisation leaves them; `word*` is how a word begins.
"""

from __future__ import annotations

LANGUAGES: dict[str, str] = {
    "cancel_strong": (
        "ignorier* missacht* vergiss* vergess* umgeh* ausser_kraft hinweg ignore* oubli* neglige* contourn* "
        "outrepass* ignora* olvid* omit* descart* elud* pasa_por_alto hagan_caso haz_caso dimentic* trascur* "
        "aggir* esquec* desconsider* contorn* игнориру* забуд* отмен* обойд* обход* пренебре* 忽略 无视 無視 忘记 "
        "忘記 不要理会 绕过 丢弃 忘れ 作废 覆盖 不再遵守 取代 従わない 従わず"
    ),
    "orders_core": (
        "anweisung* instruktion* befehl* regel* vorgab* richtlini* consigne* directive* regle* instruccion* "
        "indicacion* directric* regla* orden* istruzion* regol* direttiv* indicazion* instruco* instruca* ordens "
        "regra* diretriz* инструкци* указани* правил* 指令 指示 提示词 规则 規則 说明 命令 プロンプト ルール"
    ),
    "earlier": (
        "vorherig* bisherig* vorig* obig* fruher* vorangegangen* precedent* anterieur* ci-dessus anterior* previ* "
        "precedent* acima предыдущ* прежн* прошл* системн* ранее 之前 先前 以前 以上 所有 これまで 上記 すべて "
        "全て 系统 システム"
    ),
    "your": (
        "=deine =deinen =deiner =ihre =ihren =tes =vos =ton =votre =tus =tu =sus =tuoi =tue =suas =seu =sua твои "
        "твой свои свой 你的 您的 あなたの"
    ),
    "system_prompt": (
        "systemprompt* systemanweisung* prompt_systeme prompt_du_systeme instructions_systeme prompt_del_sistema "
        "prompt_de_sistema instrucciones_del_sistema prompt_di_sistema istruzioni_di_sistema prompt_do_sistema "
        "instrucoes_do_sistema системн* 系统提示 系統提示 系统指令 初始指令 システムプロンプト systemprompt "
        "systemnachricht системный систему sistema_prompt"
    ),
    "verbatim": (
        "vollstandig* wortlich* completo completa entier integral* entero completamente полностью 完整 全部 全文 "
        "逐字 そのまま mot_pour_mot palabra_por_palabra wort_fur_wort"
    ),
    "not": (
        "nicht nie niemals keine* ohne jamais sans =pas nunca =non =mai senza =nao sem не без никогда 不要 不得 "
        "请勿 别 勿 不会 ないで 無し"
    ),
    "let_know": (
        "erwahn* sag* informier* mitteil* verrat* zeig* mentionn* =informe =informez previen* signale* menciona* "
        "digas =avise =avises =informa =informar =informes =informare avvis* diga* menzion* dica* mencion* говор* "
        "сообща* упомина* расскаж* рассказыв* 告诉 告知 提及 通知 提到 透露 伝え 知らせ 言わ 話さ sag sage sagt "
        "parle parler parles contar conte dire сообщ*"
    ),
    "user": (
        "benutzer* nutzer* anwender* utilisateur* usuari* utent* usuario* пользовател* клиент* 用户 使用者 "
        "ユーザー 利用者"
    ),
    "perceive": (
        "wissen merk* bemerk* savoir sache remarque* sepa saber note sappia saiba perceba зна* узна* ведома "
        "замет* 知道 察觉 发现 気づ 知ら ничего"
    ),
    "transfer_strong": (
        "=sende sendet schick* ubermittel* hochlad* ubertrag* envoi* envoye* transmet* transfer* envia* =manda "
        "mandar mandalo =invia invialo inviare spedisc* отправ* перешл* загруз* передай* 发送 上传 传送 发到 转发 "
        "送信 アップロード 送っ 転送"
    ),
    "transfer": (
        "fug* kopier* einfug* ajout* copia* copie* incluy* anad* aggiung* inser* adicion* coloque* встав* добав* "
        "放入 附加 填入 粘贴 写入 含め 貼り"
    ),
    "collect": "=lies lese* lis =lire =lee leer* legg* leia* прочита* 读取 收集 获取 読み 取得 収集",
    "hard_secret": (
        "umgebungsvariabl* zugangsdaten mot_de_passe mots_de_passe cle_api cles_api cle_privee contrasena* "
        "claves_api clave_privada credencial* chiavi_api chiave_privata senha* chave_api chaves_api chave_privada "
        "парол* ключ* 密码 密钥 私钥 环境变量 凭证 令牌 对话历史 聊天记录 パスワード 秘密鍵 認証情報 環境変数 "
        "会話履歴 apiキー"
    ),
    "before": (
        "bevor zuerst =avant antes primero prima antes_de до прежде сначала 之前 首先 先 前に 最初に まず "
        "immer_zuerst toujours sempre_prima"
    ),
    "any_other": (
        "jede* anderen alle_anderen toute_autre tout_autre autre_outil autres_outils cualquier_otra "
        "otras_herramientas qualsiasi_altro altri_strumenti qualquer_outra outras_ferramentas любого_другого "
        "других_инструмент* 其他工具 任何工具 任何其他 所有工具 他のツール 回答する 回答之前 回答用户 "
        "allen_anderen vor_allen otra outro altro autre"
    ),
    "call": (
        "=rufe aufruf* verwend* nutze* appel* utilis* llama* =usa =usar chiam* chame* использу* вызыва* вызов* "
        "调用 使用 呼び出 使用し 使って 実行 werkzeug llama appelle"
    ),
    "sly": (
        "heimlich* unbemerkt* stillschweigend* discretement secretement furtivement silenciosamente discretamente "
        "segretamente silenziosamente тайно незаметно скрытно 悄悄 偷偷 暗中 秘密に こっそり"
    ),
    "act": "sende* kopier* envoi* envia* =invia invialo отправ* копиру* 发送 上传 执行 送信 実行",
    "conceal": "verberg* verschweig* =cachez dissimul* ocult* escond* nascond* скрой* скрыва* 隐瞒 隐藏 隠し 隠す 秘密",
    "unbound": (
        "uneingeschrankt* sans_restriction* sin_restricciones senza_restrizioni sem_restricoes без_ограничен* "
        "没有限制 不受限制 制限のない"
    ),
    "become": "du_bist tu_es eres sei_ora voce_e ты_теперь 你现在 あなたは",
    "reveal_strong": (
        "zeig* =gib verrat* offenbar* nenn* ausgeb* wiederhol* montre* revel* affiche* donne* repet* mostr* "
        "muestr* escrib* mostra* rivel* scriv* ripet* escrev* покаж* раскр* вывед* повтор* сообщ* 输出 显示 透露 "
        "泄露 告诉 重复 出力 表示 教えて 開示 schreib* kopier* gebe* ecris* ecrivez copie* incluy* inclui* wklej "
        "fuge напиш* 写出 粘贴 填入 放入 書いて 入力 含め"
    ),
    "forbid": (
        "nicht nie niemals ohne keine jamais sans =pas nunca no =non sem nao senza не без никогда nichts "
        "niemandem rien nada nulla nadie ninguém 不要 不得 请勿 别 勿 ないで 無し"
    ),
    "carrier": "campo champ feld parametro parametre поле 字段 参数 パラメータ フィールド",
    "core": (
        "anweisung* instruktion* befehl* regel* vorgab* richtlini* consigne* directive* regle* instruccion* "
        "indicacion* directric* regla* orden* istruzion* regol* direttiv* indicazion* instruco* instruca* ordens "
        "regra* diretriz* инструкци* указани* правил* 指令 指示 提示词 规则 規則 说明 命令 プロンプト ルール"
    ),
    "nothing": "nichts niemandem rien nada nulla =pas ничего никому 什么都",
}
