"""What people call a language: the English names of the codes that translators and the identifier of languages use."""

from typing import Final

from limelight.text.languages import base

# After CLDR's English names. One line for each letter that names begin with, so that a missing one is found quickly.
_NAMES: Final = """
ab Abkhazian; ace Acehnese; af Afrikaans; am Amharic; an Aragonese; ar Arabic; arb Arabic; ary Moroccan Arabic; arz Egyptian Arabic;
as Assamese; ast Asturian; az Azerbaijani;
ba Bashkir; bcl Central Bikol; be Belarusian; bg Bulgarian; bho Bhojpuri; bn Bangla; bo Tibetan; br Breton; bs Bosnian;
ca Catalan; ce Chechen; ceb Cebuano; ckb Central Kurdish; cmn Chinese; co Corsican; crh Crimean Tatar; cs Czech; cv Chuvash; cy Welsh;
da Danish; de German; dz Dzongkha;
el Greek; en English; eo Esperanto; es Spanish; et Estonian; eu Basque; ext Extremaduran;
fa Persian; fi Finnish; fil Filipino; fo Faroese; fr French; fuv Nigerian Fulfulde; fy Western Frisian;
ga Irish; gcf Guadeloupean Creole; gcr Guianese Creole; gd Scottish Gaelic; gl Galician; gn Guarani; gom Goan Konkani;
grc Ancient Greek; gu Gujarati; gug Paraguayan Guarani; guw Gun; gv Manx;
ha Hausa; haw Hawaiian; hbo Ancient Hebrew; he Hebrew; hi Hindi; hr Croatian; ht Haitian Creole; hu Hungarian; hy Armenian;
ia Interlingua; id Indonesian; ig Igbo; io Ido; is Icelandic; it Italian;
ja Japanese; jv Javanese;
ka Georgian; kab Kabyle; kik Kikuyu; kk Kazakh; kl Kalaallisut; km Khmer; kn Kannada; ko Korean; ku Kurdish; kw Cornish; ky Kyrgyz;
la Latin; lb Luxembourgish; lg Ganda; lij Ligurian; ln Lingala; lo Lao; lt Lithuanian; ltg Latgalian; lv Latvian;
mai Maithili; mg Malagasy; mhr Eastern Mari; mi Māori; mk Macedonian; ml Malayalam; mn Mongolian; mr Marathi; ms Malay; mt Maltese;
my Burmese;
nb Norwegian Bokmål; ne Nepali; nl Dutch; nn Norwegian Nynorsk; no Norwegian; nso Northern Sotho; ny Nyanja;
oc Occitan; om Oromo; or Odia; os Ossetic;
pa Punjabi; pcm Nigerian Pidgin; pes Persian; pl Polish; ps Pashto; pt Portuguese;
qu Quechua;
rm Romansh; ro Romanian; ru Russian; rw Kinyarwanda;
sa Sanskrit; sah Yakut; sc Sardinian; sd Sindhi; sdh Southern Kurdish; se Northern Sami; sh Serbo-Croatian; si Sinhala; sk Slovak;
sl Slovenian; sm Samoan; sn Shona; so Somali; sq Albanian; sr Serbian; ss Swati; st Southern Sotho; su Sundanese; sv Swedish; sw Swahili;
ta Tamil; te Telugu; tg Tajik; th Thai; ti Tigrinya; tk Turkmen; tl Filipino; tn Tswana; to Tongan; tr Turkish; ts Tsonga; tt Tatar;
udm Udmurt; ug Uyghur; uk Ukrainian; ur Urdu; uz Uzbek; uzs Southern Uzbek;
ve Venda; vec Venetian; vi Vietnamese; vo Volapük;
wa Walloon; wo Wolof; wuu Wu Chinese;
xh Xhosa;
yi Yiddish; yo Yoruba; yue Cantonese;
za Zhuang; zh Chinese; zu Zulu; zxx No linguistic content
"""
NAMES: Final = dict(entry.split(maxsplit=1) for entry in _NAMES.split(";"))

# What a region or a script adds, where people use it to tell two languages apart.
_VARIANTS: Final = {
    "de-at": "German (Austria)",
    "de-ch": "German (Switzerland)",
    "en-gb": "English (British)",
    "en-us": "English (American)",
    "es-419": "Spanish (Latin American)",
    "es-es": "Spanish (Spain)",
    "fr-ca": "French (Canada)",
    "pt-br": "Portuguese (Brazil)",
    "pt-pt": "Portuguese (Portugal)",
    "sr-cyrl": "Serbian (Cyrillic)",
    "sr-latn": "Serbian (Latin)",
    "zh-hans": "Chinese (simplified)",
    "zh-hant": "Chinese (traditional)",
    "zh-cn": "Chinese (simplified)",
    "zh-tw": "Chinese (traditional)",
}


def name(code: str) -> str:
    """name("de") -> "German"; name("pt-BR") -> "Portuguese (Brazil)"; a code that nobody knows is its own name."""
    variant = code.replace("_", "-").lower()
    return _VARIANTS.get(variant) or NAMES.get(base(code), code)
