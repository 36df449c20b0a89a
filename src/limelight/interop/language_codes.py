"""Languages of multilingual models are found by the code that a person means."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from limelight.errors import ConfigError
from limelight.text.language_names import same, short_code, usual_tag
from limelight.text.languages import base

# In the order of their ids, which both tokenizers count from the end of the pieces on.
_M2M100 = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy id ig ilo is it "
    "ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw "
    "ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
_WMT21 = "en ha is ja cs ru zh de"
_NLLB = (
    "ace_Arab ace_Latn acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab aka_Latn amh_Ethi apc_Arab arb_Arab ars_Arab ary_Arab arz_Arab "
    "asm_Beng ast_Latn awa_Deva ayr_Latn azb_Arab azj_Latn bak_Cyrl bam_Latn ban_Latn bel_Cyrl bem_Latn ben_Beng bho_Deva bjn_Arab "
    "bjn_Latn bod_Tibt bos_Latn bug_Latn bul_Cyrl cat_Latn ceb_Latn ces_Latn cjk_Latn ckb_Arab crh_Latn cym_Latn dan_Latn deu_Latn "
    "dik_Latn dyu_Latn dzo_Tibt ell_Grek eng_Latn epo_Latn est_Latn eus_Latn ewe_Latn fao_Latn pes_Arab fij_Latn fin_Latn fon_Latn "
    "fra_Latn fur_Latn fuv_Latn gla_Latn gle_Latn glg_Latn grn_Latn guj_Gujr hat_Latn hau_Latn heb_Hebr hin_Deva hne_Deva hrv_Latn "
    "hun_Latn hye_Armn ibo_Latn ilo_Latn ind_Latn isl_Latn ita_Latn jav_Latn jpn_Jpan kab_Latn kac_Latn kam_Latn kan_Knda kas_Arab "
    "kas_Deva kat_Geor knc_Arab knc_Latn kaz_Cyrl kbp_Latn kea_Latn khm_Khmr kik_Latn kin_Latn kir_Cyrl kmb_Latn kon_Latn kor_Hang "
    "kmr_Latn lao_Laoo lvs_Latn lij_Latn lim_Latn lin_Latn lit_Latn lmo_Latn ltg_Latn ltz_Latn lua_Latn lug_Latn luo_Latn lus_Latn "
    "mag_Deva mai_Deva mal_Mlym mar_Deva min_Latn mkd_Cyrl plt_Latn mlt_Latn mni_Beng khk_Cyrl mos_Latn mri_Latn zsm_Latn mya_Mymr "
    "nld_Latn nno_Latn nob_Latn npi_Deva nso_Latn nus_Latn nya_Latn oci_Latn gaz_Latn ory_Orya pag_Latn pan_Guru pap_Latn pol_Latn "
    "por_Latn prs_Arab pbt_Arab quy_Latn ron_Latn run_Latn rus_Cyrl sag_Latn san_Deva sat_Beng scn_Latn shn_Mymr sin_Sinh slk_Latn "
    "slv_Latn smo_Latn sna_Latn snd_Arab som_Latn sot_Latn spa_Latn als_Latn srd_Latn srp_Cyrl ssw_Latn sun_Latn swe_Latn swh_Latn "
    "szl_Latn tam_Taml tat_Cyrl tel_Telu tgk_Cyrl tgl_Latn tha_Thai tir_Ethi taq_Latn taq_Tfng tpi_Latn tsn_Latn tso_Latn tuk_Latn "
    "tum_Latn tur_Latn twi_Latn tzm_Tfng uig_Arab ukr_Cyrl umb_Latn urd_Arab uzn_Latn vec_Latn vie_Latn war_Latn wol_Latn xho_Latn "
    "ydd_Hebr yor_Latn yue_Hant zho_Hans zho_Hant zul_Latn"
)
M2M100, WMT21, NLLB = (tuple(codes.split()) for codes in (_M2M100, _WMT21, _NLLB))


def shorten(codes: Iterable[str]) -> dict[str, str]:
    """How a person writes each of a model's languages: {"deu_Latn": "de", "zho_Hans": "zh-Hans", "zho_Hant": "zh-Hant"}."""
    short = {code: short_code(code) for code in codes}
    times = Counter(short.values())
    found = {code: one if times[one] == 1 else usual_tag(code) for code, one in short.items()}
    return found if len(set(found.values())) == len(found) else {code: code for code in short}


def find(asked: str, known: Sequence[str]) -> str:
    """The language of a model that a code means: itself, or the only one with the same base. Else a ConfigError with the choices."""
    plain = {code.lower().replace("-", "_"): code for code in known}
    wanted = asked.lower().replace("-", "_")
    if wanted in plain:
        return plain[wanted]
    found = [code for code in known if same(code, asked)] if "_" not in wanted else []
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"the model has {asked} in several forms; give one of {', '.join(found)}")
    written = {usual_tag(form).lower(): code for code, short in shorten(known).items() for form in (code, short)}
    if (tag := usual_tag(asked).lower()) in written:
        return written[tag]
    if re.fullmatch(r"[a-z]+_(?:[a-z]{2}|\d{3})", wanted):  # a region says nothing to such a model
        return find(base(asked), known)
    near = difflib.get_close_matches(wanted, plain, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(plain[one] for one in near)}?" if near else f"it has {', '.join(sorted(known))}"
    raise ConfigError(f"the model has no language {asked}; {hint}")
