"""Words in a prompt that tell of something which will be another the next time: patterns.

Each looks for a value that was put in, not for talk about such values: "the current date is in the
status bar" is an instruction, "the current date is 3 May" will be wrong tomorrow.
"""

# ruff: noqa: E501 - patterns read better with one alternative a line

from __future__ import annotations

import re
from typing import Final

_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY: Final = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_DATE: Final = (
    rf"(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}"
    rf"|{_MONTH}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\.?\s+(?:of\s+)?{_MONTH}\.?(?:,?\s+\d{{4}})?"
    rf"|{_MONTH}\s+\d{{4}})"
)
_CLOCK: Final = (
    r"(?:\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[ap]\.?m\b\.?)?|\d{1,2}\s?[ap]\.?m\b\.?"
    r"|noon|midnight|\d{1,2}\s?h\s?\d{2}|\d{1,2}\s+o['’]clock)"
)
_WHEN: Final = rf"(?:{_DAY}\b[,.]?\s*(?:the\s+)?(?:{_DATE}|{_CLOCK})?|{_DATE}|{_CLOCK})"
_STAMP: Final = (
    r"\b\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?(?:Z|UTC|[+-]\d{2}:?\d{2}))?"
)
_IS: Final = r"(?:\s+(?:is|was)(?:\s+(?:now|currently))?|'s|\s*[:=]|\s+-|\s+—)\**\s*[`\"'*]*\s*"
_MARK: Final = r"[`\"'*]*"

TIME: Final = re.compile(
    rf"""
    \b(?:today(?:['’]s\s+date)?|tonight|this\s+morning|the\s+(?:current\s+)?(?:date|time|day|year|month))
      (?:\s+today)?(?:\s*\([^)\n]{{1,20}}\))?{_IS}(?:it\s+is\s+|the\s+|a\s+)?(?:{_WHEN}|(?:19|20)\d{{2}}\b)
    | \b(?:current|local|server|system|present|actual)\s+(?:date|time|datetime|day|year|month|clock|timestamp)
      (?:\s*(?:and|/|&)\s*(?:date|time))?(?:\s*\([^)\n]{{1,20}}\))?(?:\s+in\s+(?:\w+[ /]?){{1,3}})?{_IS}
      (?:the\s+)?(?:{_WHEN}|(?:19|20)\d{{2}}\b|\d{{9,13}}\b)
    | \b(?:it\s+is|it['’]s|we\s+are(?:\s+in)?|the\s+clock\s+(?:says|shows|reads))\s+
      (?:now\s+|currently\s+|already\s+|exactly\s+|about\s+)?(?:{_DAY}\b[,.]?\s|{_DATE}|{_CLOCK})
    | \bthe\s+(?:time|date)\s+(?:in|at|on)\s+(?:[\w/]+\s+){{1,3}}?is\s+(?:now\s+)?{_WHEN}
    | \b(?:day\s+of\s+(?:the\s+)?week|weekday|month|quarter|season|year)["'`*]*\s*[:=]\s*["'`*]*(?:{_DAY}\b|{_MONTH}\b|Q[1-4]\b|spring|summer|autumn|winter|(?:19|20)\d{{2}}\b)
    | \b(?:you|it|this|we|i)\s+(?:woke|began|started|launched|booted|came|went)\s+(?:\w+\s+)?(?:at|on)\s+(?:{_WHEN}|{_STAMP})
    | \b(?:the\s+)?present\s+(?:moment|time|day|hour)\s+is\s+(?:{_WHEN}|\w+day\b)
    | \b(?:heute\s+ist|es\s+ist\s+(?:jetzt|gerade)|aujourd['’]hui(?:,?\s+(?:c['’]est|nous\s+sommes))?|nous\s+sommes|hoy\s+es|oggi\s+è|hoje\s+é|vandaag\s+is(?:\s+het)?|i\s*dag\s+är(?:\s+det)?)
      \b[^\n.]{{0,25}}?\d
    | \b(?:datum|uhrzeit|fecha|hora|heure|data\s+odierna|ora|dato|klokkeslett|stand)["'`*]*\s*[:=]\s*["'`*]*\d{{1,4}}[-./:h ]\d
    | \b{_DAY}[,.]?\s+{_MONTH}\.?\s+\d{{1,2}},?\s+(?:\d{{1,2}}:\d{{2}}|\d{{4}}\b)
    | \b{_DAY}[,.]\s+\d{{1,2}}\.?\s+{_MONTH}\.?\s+\d{{4}}\b
    | \b(?:you|it|this|we|i)\s+(?:were|was|are|have\s+been|am)\s+(?:\w+\s+)?(?:started|launched|created|invoked|called|woken|opened|deployed|activated)\s+(?:at|on)\s+(?:{_WHEN}|{_STAMP})
    | \b(?:as\s+of|right\s+now|at\s+present|currently|now)\b[\s,:(=]*(?:it\s+is|it['’]s|is)?\s*
      (?:{_DAY}[,.]?\s+)?(?:{_DATE}|{_CLOCK}|{_STAMP})
    | (?:^|[\n<{{(,;|>\-*])[ \t]*["'`*]*(?:date|time|date\s*(?:/|and|&|\+)\s*time|time\s*(?:and|&|/)\s*date|datetime|timestamp|now|today|weekday|day|clock|utc|
        (?:session|conversation|chat|run|request|server|process|agent)[ _-]?(?:start(?:ed)?|began|time|date|opened)(?:[ _-]?(?:at|on))?|
        (?:last[ _-])?(?:updated|generated|rendered|refreshed|built|created|started|synced|modified)(?:[ _-]?(?:at|on))?|
        (?:current|local)[_-](?:date|time|datetime|day))["'`*]*
      (?:[ \t]*[:=>][ \t>]*|[ \t]+)["'`*]*(?:{_WHEN}|{_STAMP}|\d{{10,13}}\b)
    | \b(?:prompt|message|page|context|text|document|file|snapshot|report|this|session|conversation|chat|data)\s+
      (?:was\s+|is\s+|has\s+been\s+)?(?:generated|rendered|built|created|started|opened|assembled|compiled|refreshed|updated|retrieved|taken|began)\s+
      (?:at|on)\s+(?:{_WHEN}|{_STAMP})
    | \b\d+(?:\.\d+)?\s*(?:s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?)\s+ago\b
    | \b(?:uptime|elapsed(?:\s+time)?|up\s+since|running\s+for|idle\s+for|logged\s+in\s+since)\b[\s:=]{{1,3}}
      (?:\d|{_DAY}\b|{_DATE}|{_CLOCK})
    """,
    re.VERBOSE | re.IGNORECASE,
)
STAMP: Final = re.compile(_STAMP)
"""A date with a time of day; in examples it is one."""

VOLATILE: Final = re.compile(
    r"""
    \b(?:today|tonight|tomorrow|yesterday)\s+(?:is|was|will\s+be)\s+(?!(?:not|in|given|told|shown|written|
      said|unknown|available|found|part|the\s+(?:date|day)\b|a\s+(?:word|relative)|relative|
      ambiguous|always|meant|taken|only|when|whatever|what|counted|as\b|to\s+be))\S
    | \b(?:the\s+weather|the\s+temperature)(?:\s+(?:in|at|outside|here)(?:\s+\w+){0,2})?\s+(?:is|today)\s+(?:now\s+|currently\s+)?[-\d]
    | \b(?:is|are|was|were|has|have|there\s+(?:is|are))\s+(?:\w+\s+){0,4}(?:today|tonight|this\s+(?:morning|week|month|afternoon|evening|weekend))\s*[.!;\n]
    | (?:^|[\n.!:][ \t]*)(?:this|next|last)\s+(?:week|month|weekend|morning|evening|afternoon)(?:['’]s)?,?\s+(?:\w+\s+){0,2}(?:there\s+(?:is|are)|is|are|was|we\s+(?:have|are))\b
    | \b(?:right\s+now|at\s+the\s+moment|at\s+this\s+(?:very\s+)?moment|just\s+now|at\s+present),?\s+
      (?:the\s+(?:user|customer|person|client)|they|he|she|you|there|we)\s+(?:is|are|has|have)\s+(?!no\s+access)
    | \bthe\s+(?:user|customer|client|person)\s+(?:is\s+(?:currently|now|presently)|(?:has\s+)?just)\s+\w+
    | \b(?:good\s+(?:morning|afternoon|evening))\s*[,!]\s+\w
    """,
    re.VERBOSE | re.IGNORECASE,
)

_COUNTED: Final = (
    r"(?:turn|request|message|attempt|iteration|visit|query|call|step|round|run|build|prompt|"
    r"session|conversation|exchange|ticket|question|chat)"
)
COUNTER: Final = re.compile(
    rf"""
    \b(?:this\s+is|you\s+are\s+(?:now\s+)?(?:at|on|in)|we\s+are\s+(?:now\s+)?(?:at|on|in)|now\s+(?:at|on|in)|
      it\s+is|that\s+makes\s+it)\s+(?:your\s+|the\s+|their\s+|our\s+)?(?:{_COUNTED}\s*(?:number|no\.?|nr\.?|\#)?\s*\d+
      |\d+(?:st|nd|rd|th)\s+(?:consecutive\s+)?{_COUNTED})\b
    | (?:^|[\n<{{(,;|>*\-])[ \t]*["'`*]*(?:current\s+|total\s+)?{_COUNTED}[ _-]?(?:number|no\.?|nr\.?|count(?:er)?|index|\#)["'`*]*
      \s*[:=>]?[\s>"'`*]*\d+\b
    | (?:^|[\n<{{(,;|>*])[ \t]*["'`*]*(?:current\s+)?(?:turn|request|attempt|iteration|round|visit)s?["'`*]*\s*[:=\#]\s*[\s>"'`*]*\d+\b
    | (?<!maximum\s)(?<!minimum\s)(?<!greatest\s)(?<!max\s)(?<!max\.\s)\b(?:number|count|total|amount)\s+of\s+(?:\w+\s+){{0,2}}{_COUNTED}s?(?:\s+\w+){{0,2}}\s*(?:[:=]|is|are)\s*\d+
    | \b(?:has|have|had)\s+(?:\w+\s+){{1,3}}\d+\s+(?:\w+\s+)?times?\s+(?:already|so\s+far|before|today|this\s+\w+)
    | \b(?:queue\s+position|position\s+in\s+(?:the\s+)?queue|progress|completion|battery|score|level|rank|streak|points)["'`*]*\s*[:=]\s*["'`*]*\d+(?:[.,]\d+)?\s*(?:%|percent|of|/|\b)
    | \bcurrent\s+{_COUNTED}\b[\s:=#]*(?:is\s+)?\d+
    | \b(?:you\s+have|you['’]ve|they\s+have|the\s+(?:user|customer|agent)\s+has|we\s+have)\s+(?:now\s+|already\s+|so\s+far\s+)?
      (?:used|made|sent|spent|consumed|asked|taken|exchanged|received|handled|answered|opened|called)\s+(?:up\s+)?\$?\d[\d,.]*
    | \b\d[\d,.]{{0,15}}\s*%?\s*(?:\w{{1,30}}\s+){{0,3}}(?:remaining|left(?!\s*(?:margin|column|side|pad|to\b|join|over\b|hand|-))|so\s+far|used\s+so\s+far|unread)\b
    | \b(?:remaining|left|used|unread|spent|consumed)\b[ _-]?(?:\w+[ _-]?){{0,3}}[:=]\s*\$?\d
    | \b(?:tokens?|calls?|credits?|budget|quota|cost)[ _-](?:used|left|remaining|spent|consumed|so\s+far)\b[\s:=]+(?:is\s+|are\s+)?\$?\d
    | \b{_COUNTED}\s+\d+\s*(?:of|/|out\s+of)\s*\d+\b
    | \b\d+\s+(?:{_COUNTED}s?)\s+(?:have\s+been|were)\s+(?:made|sent|used|exchanged|handled|answered)\b
    | \b(?:counter|sequence|seq|serial|revision|nonce|hit\s+count|request[_-]?count|message[_-]?count|turn[_-]?count)["'`]?\s*[:=]\s*["'`]?\d+\b
    """,
    re.VERBOSE | re.IGNORECASE,
)

UUID: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE
)
HEX: Final = re.compile(r"\b(?:0x)?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{16,}\b", re.IGNORECASE)
ULID: Final = re.compile(r"\b0[0-7][0-9A-HJKMNP-TV-Z]{24}\b")
ADDRESS: Final = re.compile(r"<[\w. ]+ (?:object )?at 0x[0-9a-fA-F]+>|\b0x[0-9a-f]{7,16}\b")
PREFIXED: Final = re.compile(
    r"\b(?:req|sess?|session|trace|span|run|thread|msg|conv|chat|task|job|evt|txn|corr?|usr|user|cus|acct|inv)"
    r"[_-](?=[A-Za-z0-9]*\d)(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{8,}\b"
)
NAMED_ID: Final = re.compile(
    r"\b(?:request|session|trace|span|correlation|conversation|thread|run|message|transaction|job|"
    r"invocation|execution|instance|build|deploy(?:ment)?|device|chat|ticket|cache|event|process)"
    r"[ _-]?(?:id|key|token|uuid|guid|identifier|hash|ref(?:erence)?)?\b[\"'`*]*\s*(?:[:=#]|\bis\b)\s*[\"'`*<]*"
    r"(?P<value>(?=[\w.-]*\d)[A-Za-z0-9][\w.-]{4,})",
    re.IGNORECASE,
)
TEMPORARY: Final = re.compile(
    r"(?:/tmp|/var/folders|/private/tmp|\\Temp)[\\/](?:[\w.-]+[\\/])*(?=[\w.-]*\d)(?=[\w.-]*[a-z])[\w-]{8,}"
)
"""A folder that was made for one run."""
NONCE: Final = re.compile(
    r"\b(?:nonce|salt|seed|random(?:[ _-]?(?:id|seed|number|value|string|token))?|cache[ _-]?bust(?:er)?|"
    r"csrf[ _-]?token|canary|boundary|pid|process[ _-]id)\b[\"'`*]*(?:\s*(?:[:=#]|\bis\b)\s*|\s+(?=\d))[\"'`*<]*(?P<value>[\w.-]{3,})",
    re.IGNORECASE,
)
MIXED: Final = re.compile(r"(?<![\w/.@+-])[A-Za-z0-9_-]{16,44}(?![\w/@+-]|\.\w)")
EPOCH: Final = re.compile(r"(?<![\w.,$€£/-])1[5-9]\d{8}(?:\d{3}(?:\d{3}){0,2}|\.\d+)?(?![\w,/-])")

EMAIL: Final = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
ROLE_MAILBOX: Final = re.compile(
    r"^(?:support|info|help|helpdesk|sales|contact|office|hello|no-?reply|do-?not-?reply|security|admin|"
    r"billing|service|team|press|privacy|legal|abuse|postmaster|webmaster|hr|jobs|careers|orders?|"
    r"returns?|feedback|kundenservice|kontakt|someone|somebody|name|user|you|your\.?name|first\.?last|"
    r"jane\.?doe|john\.?doe|alice|bob|foo|test|example|git|escalations?|oncall|on-call|ops|compliance|"
    r"accounts?|invoices?|refunds?|it|desk|customer\.?(?:care|service)|complaints?|newsletter|alerts?)"
    r"(?:[+.-][\w-]+)?@|@(?:[\w-]+\.)*(?:example|test|invalid|localhost|domain|company|yourcompany|acme)(?:\.\w+)*$",
    re.IGNORECASE,
)
PHONE: Final = re.compile(
    r"(?<![\w.+-])(?:\+\d{1,3}[\s./-]?)?(?:\(\d{1,5}\)[\s./-]?)?\d{2,5}[\s./-]\d{2,5}(?:[\s./-]?\d{2,5}){1,3}(?![\w-])"
)
PERSON: Final = re.compile(
    r"""
    \b(?:(?:the\s+)?(?:user|customer|client|caller|patient|student|member|visitor|guest|employee|person)
      (?:['’]s)?[ _-]?(?:full[ _-]|first[ _-]|last[ _-]|display[ _-]|given[ _-])?(?:name|e-?mail|id|phone|address|
      location|city|country|plan|tier|age|birthday|birth[ _-]?date|balance|language|locale|profile|
      preferences?|interests?|account|company|role|time[ _-]?zone|history|mood|title|number)["'`*]*
      (?:\s*[:=]\s*|\s+is\s+(?:called\s+|named\s+)?)["'`*]*(?P<value>[^\s.,;:!?\n"'`*<>{}\[\]]+(?:[ \t]+[^\s.,;:!?\n"'`*<>{}\[\]]+){0,3}))
    """,
    re.VERBOSE | re.IGNORECASE,
)
CALLED: Final = re.compile(
    r"""
    \b(?:[Yy]ou\s+(?:are|will\s+be)\s+|[Yy]ou['’]re\s+)(?:now\s+|currently\s+)?(?:talking|speaking|chatting)\s+(?:to|with)\s+
      (?:Mr|Mrs|Ms|Dr|Frau|Herr|Mme)?\.?\s*(?P<talk>[A-ZÀ-Þ][\wÀ-ÿ'’-]+(?:\s+[A-ZÀ-Þ][\wÀ-ÿ'’-]+){0,2})
    | \b(?:[Ss]igned|[Ll]ogged)[\s-]in\s+(?:as|user)\s*:?\s*["'`*]*(?P<login>[\w@.+-]+)
    | \b(?:[Tt]he\s+|[Yy]our\s+)?(?:[Uu]ser|[Cc]ustomer|[Cc]lient|[Cc]aller|[Pp]atient|[Pp]erson|[Bb]oss|[Oo]wner)(?:\s+today)?\s+
      (?:is|=)\s+(?:called\s+|named\s+)?["'`*]*(?:Mr|Mrs|Ms|Dr|Frau|Herr|Mme)?\.?\s*(?P<is>[A-ZÀ-Þ][\wÀ-ÿ'’-]+(?:\s+[A-ZÀ-Þ][\wÀ-ÿ'’-]+){0,2})
    | \b(?:[Uu]ser|[Cc]ustomer|[Cc]lient|[Cc]aller|[Pp]erson)\s+(?:called|named)\s+["'`*]*(?P<named>[A-ZÀ-Þ][\wÀ-ÿ'’-]+)
    | (?:^|[\n.!"“])[ \t]*(?:[Hh]ello|[Hh]i|[Dd]ear|[Ww]elcome\s+back|[Gg]ood\s+(?:morning|evening|afternoon)),?\s+(?P<greet>[A-ZÀ-Þ][\wÀ-ÿ'’-]+)
    | \b(?:person|user|customer|man|woman|one)\s+(?:whom?\s+|that\s+)?you(?:\s+are|['’]re)?\s+(?:now\s+|currently\s+)?(?:help|assist|serv|talk|speak|chat|support)\w*(?:\s+(?:to|with))?\s+is\s+(?P<helped>[A-ZÀ-Þ][\wÀ-ÿ'’-]+)
    | (?:^|[\n<({,;|])[ \t]*["'`*]*(?:[Ff]ull\s+|[Ff]irst\s+|[Dd]isplay\s+)?(?:[Nn]ame|[Aa]ccount\s+(?:holder|owner)|[Oo]wner|[Cc]ardholder|[Rr]equester|[Rr]equested\s+by|[Ss]ubscriber|[Tt]enant|[Pp]atient|[Cc]lient|[Bb]eneficiary|[Aa]ssignee|[Ss]ender|[Pp]assenger|[Gg]uest|[Tt]raveller|[Ee]mployee|[Ss]tudent|[Rr]ecipient|[Bb]uyer|[Aa]pplicant|[Pp]layer|[Cc]ustomer|[Cc]ontact)["'`*]*[ \t]*[:=>][ \t>]*["'`*]*(?:Mr|Mrs|Ms|Dr|Frau|Herr|Mme)?\.?\s*(?P<label>[A-ZÀ-Þ][\wÀ-ÿ'’-]+[ \t]+[A-ZÀ-Þ][\wÀ-ÿ'’-]+)
    | \b(?:[Yy]ou|[Yy]our|[Ff]or|[Ww]ith|[Tt]o|is|user|customer)\s+(?:\w+\s+){0,2}(?:Mr|Mrs|Ms|Dr|Prof|Frau|Herr|Mme)\.?\s+(?P<title>[A-ZÀ-Þ][\wÀ-ÿ'’-]+)
    | \b(?:heißt|s['’]appelle|se\s+llama|si\s+chiama)\s+(?P<foreign>[A-ZÀ-Þ][\wÀ-ÿ'’-]+)
    | \b[Pp]ersonal\s+(?:\w+\s+)?(?:assistant|agent|secretary)\s+(?:of|to|for)\s+(?:Mr|Mrs|Ms|Dr|Frau|Herr|Mme)?\.?\s*(?P<boss>[A-ZÀ-Þ][\wÀ-ÿ'’-]+)
    | \b(?:[Aa]ddress|[Cc]all)\s+(?:him|her|them|the\s+(?:user|customer))\s+(?:as\s+|by\s+)?["'`*]*(?:Mr|Mrs|Ms|Dr|Frau|Herr|Mme)?\.?\s*(?P<call>[A-ZÀ-Þ][\wÀ-ÿ'’-]+)
    """,
    re.VERBOSE,
)
NOBODY: Final = frozenset(
    [
        "world",
        "there",
        "all",
        "everyone",
        "sir",
        "madam",
        "customer",
        "team",
        "user",
        "reader",
        "friend",
        "guest",
        "traveller",
    ]
)
"""Whom a greeting may name without naming anybody."""
HOME: Final = re.compile(
    r"(?:/home/|/Users/|[A-Za-z]:\\+Users\\+)(?P<value>[^\s/\\:\"'`<>,;)]+)", re.IGNORECASE
)
HOST: Final = re.compile(
    r"\b(?:host[ _-]?name|host|machine(?:[ _-]name)?|computer(?:[ _-]name)?|node[ _-]?name|pod|container|workstation)"
    r"\b[\"'`*]*\s*(?:[:=]|\bis\b|\bcalled\b|(?<=on host)|(?<=on machine)|(?<=on node))\s*[\"'`*]*(?P<value>[A-Za-z][\w.-]*\d[\w.-]*|[\w-]+\.(?:local|lan|internal|corp)\b)",
    re.IGNORECASE,
)
USER_LINE: Final = re.compile(
    r"\b(?:user(?:[ _-]?name)?|login|whoami|logname|cwd|working[ _-]directory|current[ _-]directory|"
    r"workspace|pwd|project[ _-](?:root|folder|directory|path)|ip(?:[ _-]address)?|client[ _-]ip|home(?:[ _-]dir(?:ectory)?)?)"
    r"[\"'`*]*\s*(?:[:=]|\bis\b)\s*[\"'`*]*(?P<value>/(?:[\w.~-]+/)*[\w.~-]+|[A-Za-z]:\\[^\s\"'`]+|\d{1,3}(?:\.\d{1,3}){3})",
    re.IGNORECASE,
)
FACT: Final = re.compile(
    r"""
    \b(?:[Hh]is|[Hh]er|[Tt]heir|[Tt]he\s+(?:user|customer|client|caller|patient|member)['’]s)\s+(?:\w+\s+){0,2}
      (?:is|was|are|ends\s+in)\s+["'`*]*(?P<value>[A-Z\d][\w@.+-]*)
    | \b(?:[Tt]he\s+)?(?:[Uu]ser|[Cc]ustomer|[Cc]lient|[Cc]aller|[Pp]atient|[Mm]ember)\s+(?:lives\s+in|speaks(?!\s+to)|is\s+from|owns|has\s+(?:been\s+a\s+)?(?:\w+\s+){0,2}since|comes\s+from|works\s+(?:at|for|as)|was\s+born|
      is\s+based\s+in|is\s+located\s+in|is\s+\d+\s+years|has\s+(?:a\s+)?(?:\w+\s+)?(?:balance|subscription|plan|membership)\s+of|
      bought|ordered|last\s+(?:logged|visited|ordered|asked)|prefers\s+to\s+be\s+called)\s*(?P<more>\S[^\n.]{0,30})
    """,
    re.VERBOSE,
)

PLACEHOLDER: Final = re.compile(
    r"""
    \{\{-?\s*(?P<jinja>[^{}\n]{1,80}?)\s*-?\}\} | \{%-?\s*(?P<tag>(?:if|for|include|set)\b[^{}\n]{1,80}?)\s*-?%\}
    | \$\{(?P<shell>[^{}\n]{1,60})\} | \$\((?P<command>[^()\n]{1,60})\) | <%=?\s*(?P<erb>[^%\n]{1,60}?)\s*%>
    | %\((?P<percent>\w+)\)[sdfr] | (?<![\w/.{-])\{(?P<format>[A-Za-z_][\w.]*(?:\(\))?(?:\[[\w"']+\])?(?:![rsa])?(?::[^{}\n"]{0,20})?)\}(?![\w/}-]|\.\w)
    | (?<![\w\[])\[\[(?P<bracket>[A-Z_]{3,40})\]\] | (?<![\w<])<<(?P<angle>[A-Za-z_]{3,40})>>
    """,
    re.VERBOSE,
)
CHANGING_NAME: Final = re.compile(
    r"(?:^|[\W_])(?i:now|date|time|today|timestamp|datetime|clock|strftime|utcnow|hour|weekday|uuid\w*|random|rand|nonce|id|"
    r"user\w*|customer\w*|name|email|account|profile|query|question|input|request\w*|history|messages?|"
    r"context|docs?|documents?|results?|memory|memories|session\w*|conversation|turn|count\w*|counter|step|hostname|host|cwd|"
    r"pwd|path|location|locale|weather|balance|status|state|version|chunks?|retrieved|search\w*|whoami|tools?)(?:$|[\W_])"
    r"|(?:Now|Date|Time|Today|Id|Name|Email|Query|Question|Input|Count|History)(?:$|[\W_A-Z])",
)
REQUEST: Final = re.compile(
    r"""
    (?:^|\n)[ \t#>*-]*["'`*]*(?:(?:here|this|below)\s+(?:is|are)\s+|(?:it['’]s)\s+)?(?:(?:the\s+)?(?:user|customer)(?:['’]s)?\s+(?:asked|asks|wrote|writes|said|says|wants(?:\s+to\s+know)?|(?:current\s+|last\s+|latest\s+)?(?:question|query|message|request|input))
      |(?:search|retrieved|retrieval|top|relevant|matching|recent)\s+(?:results?|documents?|passages?|chunks?|memories|messages?|orders?|tickets?|events?|files?)
      |(?:conversation|chat|message)\s+(?:so\s+far|history|summary)|previous\s+(?:messages?|conversation|turns?|answers?|questions?)
      |last\s+(?:tool\s+)?(?:results?|outputs?|errors?|messages?|answers?)|(?:current|open|pending)\s+(?:tasks?|tickets?|orders?|todos?|jobs?|alerts?|tabs?|files?|branch|status|weather|temperature|price|balance|state|mood|page|url|selection)
      |git\s+(?:status|branch|log)|(?:unread|new)\s+(?:mails?|e-?mails?|messages?|notifications?)|stock(?:\s+(?:price|level|count))?|exchange\s+rate|selected\s+(?:text|item|file|row)|selection|clipboard|(?:retrieved|relevant|additional)\s+(?:context|information|facts|passage)|(?:task|request|message|question|input)\s+(?:from|of|by)\s+(?:the\s+)?(?:user|customer|client)|recent\s+(?:searches|purchases|activity|changes|commits)|today['’]s\s+\w+(?:\s+\w+)?|cart(?:\s+contents)?|account\s+balance|query|question|input)
      ["'`*]*\s*(?:\([^)\n]{1,30}\))?\s*[:=]\**[ \t]*(?:\n[ \t]*)?["'`*“]*(?P<value>[^\s{<\[][^\n]{2,})
    | \b(?:current|present|live|latest|today['’]s)\s+(?:\w+\s+){0,2}(?:price|rate|balance|temperature|weather|load|usage|score|status|stock|inventory|queue|level|total|speed|position|location|branch|version\s+in\s+production)
      \s*(?:[:=]|is|are|stands\s+at)\s*(?:now\s+)?["'`*]*(?P<now>[-+$€£]?\d[\d.,:]*\s*[%°\w]*|on\b|off\b|down\b|up\b)
    | \b(?:cart|basket|inbox|queue|inventory|account|wallet|calendar|to-?do\s+list)\s+(?:now\s+|currently\s+)?(?:contains|holds|has|shows)\s+(?:\w+\s+)?\$?\d
    | \b[A-Z]{3}/[A-Z]{3}\s*(?:is|at|=|:|trades)\s*(?:at\s+)?\d+\.\d
    | \b(?:it\s+is|it['’]s)\s+(?:currently\s+|now\s+)?-?\d+\s*(?:°|degrees)
    | \bthe\s+(?:user|customer|client)\s+(?:has\s+)?(?:just\s+)?(?:asked|wrote|said|requested)\s*:?\s*["'“](?P<quoted>[^"'”\n]{3,})
    """,
    re.VERBOSE | re.IGNORECASE,
)
UNORDERED: Final = re.compile(
    r"\{(?:'[^'\n:]*'|\"[^\"\n:]*\"|\d+)(?:, (?:'[^'\n:]*'|\"[^\"\n:]*\"|\d+))+\}"
    r"|\b(?:frozen)?set\(\{|\bdict_(?:keys|values|items)\("
)
EXAMPLE: Final = re.compile(
    r"\b(?:e\.\s?g\.|for\s+(?:example|instance)|examples?|such\s+as|like\s+this|looks?\s+like|in\s+the\s+form(?:at)?|"
    r"formats?|sample|template|pattern|schema|written\s+as|as\s+in|placeholder|fictional|made[- ]up|imagine|suppose|"
    r"if\s+(?:the|a|an|someone|somebody)|when\s+(?:the|a|an|someone|somebody)|say\s+[\"'“]|never\s+write|instead\s+of|"
    r"ISO\s?8601|RFC\s?3339|z\.\s?B\.)",
    re.IGNORECASE,
)
STATIC: Final = re.compile(
    r"\b(?:sha-?(?:1|256|512)|checksum|digest|commit|integrity|pinned|pin|fingerprint|licen[cs]e|patent|isbn|"
    r"cutoff|cut-off|effective|since|until|from|valid|version|released?|founded|established|copyright|deadline|expires?|"
    r"hotline|helpline|switchboard|reception|fax|toll[- ]free|emergency|public\s+key|model|image|schema|namespace|clsid|guid\s+of)\b|©",
    re.IGNORECASE,
)
