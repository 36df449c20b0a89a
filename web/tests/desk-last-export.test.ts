/** What is taken away from the desk: vectors, tables, links, and the page as a file. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { rgbOf } from "../src/desk/colours";
import { drawBars, drawHeat, drawLights, drawTree } from "../src/desk/drawings";
import { citation, csv, fileName, inScript, shareLink, standalone, type Written } from "../src/desk/exporting";
import { fitting, sizeOf } from "../src/desk/png";
import { breadth, element, escaped, picture, words, wrapped } from "../src/desk/svg";
import { Matrix, headsOf, masked, weights, type Trace } from "../src/desk/trace";

const numbers = JSON.parse(readFileSync("tests/traces/numbers.json", "utf8")) as Trace;
const labels = (texts: readonly string[]) => texts.map((text) => ({ text }));
const targetLabels = labels(numbers.target.tokens.map((token) => token.piece));
const whole = (body: string, more: Partial<Parameters<typeof picture>[0]> = {}): string =>
  picture({ title: "Spot", description: "a picture", citation: "Limelight", width: 300, height: 200, body, ...more });

/** Another program than ours reads the file: expat, which is strict. Gives the names of all elements and all text. */
function parsed(svg: string): { names: string[]; text: string } {
  const script = [
    "import sys, json, xml.etree.ElementTree as tree",
    "root = tree.fromstring(sys.stdin.buffer.read())",
    "print(json.dumps({'names': [each.tag.split('}')[1] for each in root.iter()], 'text': ' '.join(root.itertext())}))",
  ].join("\n");
  return JSON.parse(execFileSync("python3", ["-c", script], { input: svg, encoding: "utf8" })) as { names: string[]; text: string };
}

describe("SVG", () => {
  test("whatever stands in a piece, the file can be read", () => {
    const hostile = `<script>alert(1)</script> & "q" ]]> \u0000\u0007\ud800 \u2028 <!-- ${"x".repeat(50)}`;
    const read = parsed(whole(words(0, 0, hostile), { title: hostile, description: hostile, citation: hostile }));
    expect(read.names).not.toContain("script");
    expect(read.text).toContain("<script>alert(1)</script> & \"q\" ]]> \ufffd\ufffd\ufffd");
  });

  test("numbers are short, what is undefined is left out", () => {
    expect(element("rect", { x: 1.23456, y: undefined, fill: "a\"b" })).toBe('<rect x="1.23" fill="a&quot;b"/>');
    expect(escaped("a<b>")).toBe("a&lt;b&gt;");
  });

  test("it says what it is to those who do not see it, and what it shows to those who do", () => {
    const svg = whole("", { title: "Spot", description: "A heat map", citation: "Limelight, model x" });
    expect(svg).toMatch(/<svg[^>]*role="img" aria-labelledby="title desc"/);
    expect(svg).toContain('<title id="title">Spot</title>');
    expect(svg).toContain('<desc id="desc">A heat map</desc>');
    expect(parsed(svg).text).toContain("Limelight, model x");
  });

  test("a long line is cut between words and loses none", () => {
    const text = "one two three four five six seven eight nine ten eleven twelve";
    const lines = wrapped(text, 11, 120);
    expect(lines.length).toBeGreaterThan(2);
    expect(lines.join(" ")).toBe(text);
    for (const line of lines) expect(breadth(line, 11)).toBeLessThanOrEqual(120);
    expect(wrapped("x".repeat(100), 11, 120)).toEqual(["x".repeat(100)]);
  });

  test("nothing in it comes from elsewhere", () => {
    for (const found of whole(drawLights(numbers, "cividis", "linear").body).matchAll(/(href|src|url)\W+([^"')]*)/g)) expect(found[2]).toBe("#masked".slice(1));
  });
});

describe("drawings", () => {
  const asked = { matrix: weights(numbers, "dec", 1, 2), rows: targetLabels, columns: labels(numbers.target.inputs), palette: "viridis", scale: "linear", masked: (row: number, column: number) => masked(numbers, "dec", row, column) } as const;

  test("a heat map has one rectangle for each cell, in the colour of its weight, hatched where nothing may be seen", () => {
    const { body } = drawHeat(asked);
    const cells = [...body.matchAll(/<rect x="(\d+)" y="(\d+)" width="20" height="20" fill="([^"]+)"\/>/g)];
    const size = asked.matrix.rows;
    expect(cells).toHaveLength(size * asked.matrix.columns);
    expect(cells.filter((cell) => cell[3] === "url(#masked)")).toHaveLength((size * (size - 1)) / 2);
    for (const [, x, y, fill] of cells) {
      const [row, column] = [Number(y) / 20, Number(x) / 20];
      if (column > row) continue;
      const wanted = rgbOf("viridis", asked.matrix.at(row, column)).map((value) => value.toString(16).padStart(2, "0"));
      expect(fill).toBe(`#${wanted.join("")}`);
    }
  });

  test("its words are text, all of them", () => {
    const { text } = parsed(whole(drawHeat(asked).body));
    for (const { text: piece } of [...asked.rows, ...asked.columns]) expect(text).toContain(piece);
  });

  test("the desk shows every head, and how far each is dimmed", () => {
    const dimmed = structuredClone(numbers);
    dimmed.stats!.heads.find((head) => head.id === "cross.1.2")!.gate = 0.25;
    const heads = (["enc", "dec", "cross"] as const).flatMap((kind) => headsOf(numbers.model, kind));
    const { body, description } = drawLights(dimmed, "cividis", "linear");
    expect(body.match(/shape-rendering/g)).toHaveLength(heads.length);
    expect(body.match(/width="44" height="4" fill="#4b6100"/g)).toHaveLength(heads.length - 1);
    expect(body.match(/width="11" height="4" fill="#4b6100"/g)).toHaveLength(1);
    expect(description).toContain("cross 1·2 to 25 %");
    const decoder = drawLights(numbers, "cividis", "linear").body.split("Decoder")[1]!.split("Cross")[0]!;
    expect(decoder.match(/url\(#masked\)/g)).toHaveLength(8);
  });

  test("the beam tree draws each beginning, and dots what was given up", () => {
    const { body } = drawTree(numbers);
    const nodes = numbers.beam!.nodes;
    expect(body.match(/<rect/g)!.length).toBeLessThanOrEqual(nodes.length);
    expect(body.match(/stroke-dasharray/g)).toHaveLength(nodes.filter((node) => !node.kept && !node.done).length);
    expect(() => drawTree({ ...numbers, beam: null })).not.toThrow();
  });

  test("bars below zero go to the other side", () => {
    const { body } = drawBars([{ text: "a", value: -1, told: "−1.00" }, { text: "b", value: 0.5, told: "+0.50" }], [-1, 1]);
    const [left, right] = [...body.matchAll(/<rect x="([\d.]+)" y="\d+" width="([\d.]+)"/g)].map((found) => found.slice(1).map(Number));
    expect(left![0]! + left![1]!).toBeCloseTo(right![0]!, 1);
    expect(right![1]).toBe(left![1]! / 2);
  });

  test("every drawing can be read by another program", () => {
    for (const { body, ...rest } of [drawHeat(asked), drawLights(numbers, "greys", "sqrt"), drawTree(numbers)])
      expect(parsed(whole(body, rest)).names[0]).toBe("svg");
  });
});

describe("files", () => {
  test("names hold the text as far as every system takes it", () => {
    const named = (text: string): string => fileName({ ...numbers, source: { ...numbers.source, text } }, "cross.1.2", "svg");
    expect(named("Twenty-one: café / über?")).toBe("limelight-twenty-one-cafe-uber-cross.1.2.svg");
    expect(named("???")).toBe("limelight-cross.1.2.svg");
    expect(named("../../etc/passwd")).toBe("limelight-etc-passwd-cross.1.2.svg");
    expect(named("猫".repeat(90)).length).toBeLessThan(80);
  });

  test("a picture says its model, its sentence, what it shows, and that something was changed", () => {
    expect(citation(numbers, "Spot: cross 1·2")).toBe("Limelight, model format-1, en to de. “twenty-one” → “zwei eins drei zwei”. Spot: cross 1·2.");
    const changed = structuredClone(numbers);
    changed.stats!.heads[3]!.gate = 0;
    changed.baseline = { text: "x", delta_logp: -1 };
    changed.model.step = 40000;
    expect(citation(changed, "Stage")).toContain("step 40,000");
    expect(citation(changed, "Stage")).toContain("Changed inside: 1 head dimmed.");
  });

  test("a table has every number, and nothing where nothing may be seen", () => {
    const matrix = new Matrix(2, 3, Float32Array.of(0.5, 1 / 3, -Infinity, 1, 0, 0.25));
    const text = csv(matrix, labels(["a,b", "c"]), labels(['"', "y", "\n"]), (row, column) => row === 1 && column === 2);
    expect(text).toBe(',"""",y,"\n"\r\n"a,b",0.5,0.333333,\r\nc,1,0,\r\n');
  });

  test("a link is the address with all that is chosen, unless it is too long or leads nowhere", () => {
    expect(shareLink("http://a.example/x/#/x?s=old", "#/x?s=new")).toBe("http://a.example/x/#/x?s=new");
    expect(shareLink("http://a.example/", `#/x?s=${"a".repeat(3000)}`)).toBeNull();
    expect(shareLink("file:///home/me/x.html", "#/x")).toBeNull();
  });

  test("pictures of pixels state their size and stay within what browsers draw", () => {
    expect(sizeOf(whole("", { width: 500, height: 100 }))).toEqual({ width: 532, height: 181 });
    expect(fitting(500, 300, 3)).toBe(3);
    expect(fitting(10_000, 100, 3)).toBe(1.6);
  });
});

describe("the page as a file", () => {
  const made = (tagName: string, attributes: Record<string, string>, textContent = ""): Written => ({
    tagName,
    attributes: Object.entries(attributes).map(([name, value]) => ({ name, value })),
    textContent,
  });
  const hostile = { text: "</script><script>alert(1)</script>\u2028<!--", n: 1 };

  test("no text ends the script that it stands in, and it is read back as it was", () => {
    expect(inScript(hostile)).not.toMatch(/[<\u2028\u2029]/);
    expect(JSON.parse(inScript(hostile))).toEqual(hostile);
  });

  test("script, style and policy are kept to the byte, and the trace takes its place", () => {
    const html = standalone(
      [made("META", { content: "script-src 'sha256-x='; \"q\" & r" }), made("TITLE", {}, "a < b"), made("STYLE", {}, "a>b{}")],
      [made("SCRIPT", { type: "application/json", id: "trace" }, "null"), made("SCRIPT", { type: "module" }, "a && b < c")],
      hostile,
    );
    expect(html).toContain("<meta content=\"script-src 'sha256-x='; &quot;q&quot; &amp; r\">\n");
    expect(html).toContain("<title>a &lt; b</title>");
    expect(html).toContain("<style>a>b{}</style>");
    expect(html).toContain('<script type="module">a && b < c</script>');
    expect(html).toContain(`<script type="application/json" id="trace">${inScript(hostile)}</script>`);
    expect(html.match(/<script/g)).toHaveLength(2);
  });
});
