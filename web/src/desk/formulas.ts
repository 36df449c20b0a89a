/** Formulas: one line of text that a person can read, as the tree that MathML draws. No library, no font.
 *
 *     termsOf("softmax(Q K^T / sqrt{d_k}) V")
 *
 * Letters are names, `_` and `^` bind the next thing, braces group without being seen, `frac{a}{b}` and `sqrt{a}` are drawn as such.
 */

export type Term =
  | { tag: "mi" | "mn" | "mo" | "mtext"; text: string }
  | { tag: "mrow" | "mfrac" | "msqrt" | "msub" | "msup" | "msubsup"; parts: Term[] };

const LEXEMES = /\s+|[A-Za-zα-ω][A-Za-z]*|\d+(?:\.\d+)?|"[^"]*"|[_^{}]|[^\s]/gu;

export function termsOf(formula: string): Term[] {
  const lexemes = (formula.match(LEXEMES) ?? []).filter((lexeme) => lexeme.trim());
  let at = 0;

  function row(until: string | null): Term[] {
    const parts: Term[] = [];
    while (at < lexemes.length && lexemes[at] !== until) parts.push(bound(atom()));
    if (until !== null && lexemes[at++] !== until) throw new Error(`"${formula}" lacks a ${until}`);
    return parts;
  }

  function group(): Term {
    if (lexemes[at++] !== "{") throw new Error(`"${formula}" lacks a { at ${at}`);
    return grouped(row("}"));
  }

  function atom(): Term {
    const lexeme = lexemes[at++];
    if (lexeme === undefined || /^[_^}]$/.test(lexeme)) throw new Error(`"${formula}" ends or binds too early at ${at}`);
    if (lexeme === "{") {
      at--;
      return group();
    }
    if (lexeme === "frac") return { tag: "mfrac", parts: [group(), group()] };
    if (lexeme === "sqrt") return { tag: "msqrt", parts: [group()] };
    if (lexeme.startsWith('"')) return { tag: "mtext", text: lexeme.slice(1, -1) };
    if (/^\d/.test(lexeme)) return { tag: "mn", text: lexeme };
    // A name of several letters is a function or a word and stands upright; MathML does that by itself.
    if (/^[A-Za-zα-ω]/.test(lexeme)) return { tag: "mi", text: lexeme };
    return { tag: "mo", text: lexeme === "*" ? "·" : lexeme === "-" ? "−" : lexeme };
  }

  function bound(base: Term): Term {
    let sub: Term | null = null;
    let sup: Term | null = null;
    while (lexemes[at] === "_" || lexemes[at] === "^") {
      const mark = lexemes[at++];
      if (mark === "_") sub = atom();
      else sup = atom();
    }
    if (sub && sup) return { tag: "msubsup", parts: [base, sub, sup] };
    if (sub) return { tag: "msub", parts: [base, sub] };
    return sup ? { tag: "msup", parts: [base, sup] } : base;
  }

  return row(null);
}

function grouped(parts: Term[]): Term {
  return parts.length === 1 ? parts[0]! : { tag: "mrow", parts };
}

/** The same as MathML text, for files and tests. */
export function mathml(terms: readonly Term[]): string {
  return terms
    .map((term) => ("text" in term ? `<${term.tag}>${escaped(term.text)}</${term.tag}>` : `<${term.tag}>${mathml(term.parts)}</${term.tag}>`))
    .join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
