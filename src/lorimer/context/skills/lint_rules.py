"""What the linter of skills looks for in texts and scripts, as patterns of one line.

Every gap in a pattern has an end, so that no text takes more than linear time; that a line is
longer than a person reads is a finding of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """What is looked for; `where` is `script`, `text` (anything else) or `any`."""

    name: str
    level: str
    message: str
    pattern: re.Pattern[str]
    where: str = "any"


def _rule(name: str, level: str, message: str, pattern: str, where: str = "any") -> Rule:
    return Rule(name, level, message, re.compile(pattern, re.IGNORECASE), where)


_FETCHERS = r"(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod|fetch)"
_SHELLS = r"(?:sudo\s+(?:-\S+\s+)*)?(?:env\s+)?(?:/\S{0,60}/)?(?:ba|z|da|k|fi|c)?sh\b"
_RUNNERS = rf"(?:{_SHELLS}|(?:python|perl|ruby|node|php|pwsh|powershell)[\d.]*\b|iex\b|source\b)"
_HOME = r"(?:~|\$\{?HOME\}?|/root|/home/[^\s/'\"]{1,60}|%USERPROFILE%)"

RULES = (
    _rule("pipe-to-shell", "danger", "it fetches something and runs it at once",
          rf"\b{_FETCHERS}\b[^\n]{{0,300}}\|\s*(?:tee\s+\S+\s*\|\s*)?{_RUNNERS}"),
    _rule("pipe-to-shell", "danger", "it fetches something and runs it at once",
          rf"(?:{_SHELLS}\s+-c\s+[\"']?|eval\s+[\"']?|<\s*)[\$<]?[(`][^\n)]{{0,300}}\b{_FETCHERS}\b"),
    _rule("runs-text", "look", "it runs text that it puts together",
          r"\b(?:eval|exec)\s*\(|\bos\.system\s*\(|shell\s*=\s*True|\bchild_process\b|"
          r"new\s+Function\s*\(|\beval\s+[\"'$`]|\bInvoke-Expression\b", "script"),
    _rule("decodes-and-runs", "danger", "it decodes text and runs it",
          rf"base64\s+(?:-d|--decode|-D)\b[^\n]{{0,300}}\|\s*{_RUNNERS}|"
          r"(?:eval|exec)\s*\([^\n]{0,300}(?:b64decode|fromhex|atob|decompress|unhexlify)"),
    _rule("network", "look", "it uses the network",
          r"\b(?:curl|wget|nc|ncat|socat|ssh|scp|sftp|rsync|telnet|ftp)\s+\S|"
          r"\b(?:requests|httpx|aiohttp|urllib3?|http\.client|socket|smtplib|paramiko|websockets?)"
          r"\.\w+\s*\(|\burlopen\s*\(|\bXMLHttpRequest\b|\bfetch\s*\(\s*[\"'`]|"
          r"\b(?:import|from)\s+(?:requests|httpx|aiohttp|urllib|socket|smtplib|paramiko)\b|"
          r"require\(\s*[\"'](?:https?|net|axios|node-fetch)[\"']", "script"),
    _rule("network", "look", "it tells to use the network",
          r"(?m)^[ \t]{0,80}(?:\$\s+)?(?:sudo\s+)?(?:curl|wget|nc|ncat|ssh|scp|rsync)\s+\S",
          "text"),
    _rule("installs", "look", "it installs other programs",
          r"\b(?:pip3?|pipx|uv\s+pip|npm|pnpm|yarn|cargo|gem|go|brew|apt(?:-get)?|dnf|apk)\s+"
          r"(?:-\S+\s+)*(?:install|add|i)\b|\b(?:npx|uvx|bunx)\s+\S"),
    _rule("secrets", "danger", "it names a place where secrets lie",
          rf"{_HOME}/\.(?:ssh|aws|gnupg|kube|docker|azure|config/gcloud|netrc|npmrc|pypirc|git-credentials)"
          r"\b|\bid_(?:rsa|ed25519|ecdsa)\b|\.aws/credentials|/etc/shadow\b|\blogin\.keychain\b|"
          r"\bsecurity\s+find-(?:generic|internet)-password\b|\bwallet\.dat\b"),
    _rule("secrets", "look", "it reads variables or files that often hold secrets",
          r"(?:os\.environ(?:\.get)?|getenv|process\.env)\W{1,3}[^\n]{0,40}(?:KEY|TOKEN|SECRET|PASSW)|"
          r"\$\{?[A-Z_]{0,60}(?:API_KEY|TOKEN|SECRET|PASSWORD)\b|(?:^|[\s\"'/(])\.env\b(?!\.example)|"
          r"\bprintenv\b|\bos\.environ\.items\(|\bdict\(os\.environ\)"),
    _rule("writes-outside", "look", "it writes outside its work",
          rf"(?:>>?|\btee\b(?:\s+-a)?|\b(?:cp|mv|ln)\b[^\n]{{0,300}}|open\()\s*[\"']?"
          rf"(?:{_HOME}/|/etc/|/usr/|/var/|/opt/)"),
    _rule("stays", "danger", "it changes what runs later by itself",
          r"\bcrontab\b|/etc/cron|\bsystemctl\s+(?:--user\s+)?enable\b|\blaunchctl\s+load\b|"
          r"\.(?:bashrc|zshrc|bash_profile|profile|zshenv)\b|\.git/hooks/|"
          r"git\s+config\s+[^\n]{0,300}(?:core\.hooksPath|core\.sshCommand|alias\.)"),
    _rule("destroys", "danger", "it deletes or overwrites much",
          rf"\brm\s+-\w{{0,9}}[rR]\w{{0,9}}\s+(?:-\S+\s+)*[\"']?(?:/(?!tmp)|{_HOME}|\*|\.\s)|"
          r"\bmkfs\b|\bdd\s+[^\n]{0,300}of=/dev/|git\s+push\s+[^\n]{0,300}--force\b|"
          r"shutil\.rmtree\(\s*[\"'](?:/|~)|:\(\)\s*\{"),
    _rule("privilege", "look", "it wants more rights",
          r"(?:^|[\s;&|(`])sudo\s+\S|\bchmod\s+(?:-\S+\s+)*(?:777|[ugoa]*\+s)\b|\bsetcap\b|\bsu\s+-"),
    _rule("switches-off", "danger", "it tells to do without checks or questions",
          r"--dangerously-\w+|--allow-unsandboxed|--no-sandbox|--yolo\b|"
          r"\b(?:disable|bypass|turn\s+off|skip)\s+(?:\w+\s+){0,3}"
          r"(?:sandbox|approvals?|permissions?|confirmations?|safety|security|review)\b|"
          r"\b(?:without|don'?t|do\s+not|never)\s+(?:ask(?:ing)?|confirm(?:ing)?|prompt(?:ing)?)\b"
          r"[^\n.]{0,40}\b(?:user|permission|approval|confirmation)\b"),
    _rule("injection", "danger", "it speaks to the model against its own rules",
          r"\b(?:ignore|disregard|forget|override)\b[^\n.]{0,40}"
          r"\b(?:previous|prior|above|earlier|other|system|all)\b[^\n.]{0,30}"
          r"\b(?:instructions?|prompts?|rules?|messages?|guidelines?)\b|"
          r"\b(?:reveal|print|repeat|send)\b[^\n.]{0,30}\b(?:system\s+prompt|hidden\s+instructions)\b|"
          r"\byou\s+are\s+now\b[^\n.]{0,40}\b(?:DAN|jailbroken|unrestricted|root|admin)\b|"
          r"<\s*/?\s*(?:system|agent_status|skills|external_content|tool_result)\s*>|"
          r"<\|im_start\|>|\[INST\]"),
    _rule("hides", "danger", "it tells to keep something from the person",
          r"\b(?:do\s+not|don'?t|never|without)\s+(?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?|"
          r"show(?:ing)?|reveal(?:ing)?|notify(?:ing)?|let(?:ting)?)\b[^\n.]{0,40}"
          r"\b(?:user|human|person|anyone|owner|operator)\b|\b(?:secretly|silently)\s+"
          r"(?:send|upload|copy|add|run|execute|install|post|email)\b"),
    _rule("sends", "danger", "it sends data away",
          r"\bcurl\b[^\n]{0,300}(?:\s-d\b|\s--data|\s-F\b|\s-T\b|--upload-file|-X\s*(?:POST|PUT))|"
          r"\b(?:requests|httpx)\.(?:post|put)\s*\(|webhook\.site|requestbin|ngrok\.(?:io|app)|"
          r"pastebin\.com/api|\bexfiltrat\w+|hooks\.slack\.com|discord(?:app)?\.com/api/webhooks"),
    _rule("remote-instructions", "danger", "it takes its instructions from elsewhere",
          r"\b(?:follow|execute|obey|read\s+and\s+follow|apply|load)\b[^\n.]{0,40}"
          r"\binstructions?\b[^\n.]{0,40}https?://"),
    _rule("blob", "look", "it holds a long piece of encoded text",
          r"[A-Za-z0-9+/]{200,}={0,2}|(?:\\x[0-9a-f]{2}){40,}|\b[0-9a-f]{256,}\b"),
    _rule("number-address", "look", "it names an address by its number",
          r"https?://(?:\d{1,3}\.){3}\d{1,3}(?!\d)|https?://\[[0-9a-f:]+\]|https?://0x[0-9a-f]+"),
)  # fmt: skip
