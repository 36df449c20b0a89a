import { expect, test } from "vitest";

import { Links, listed, litBy, placesOf, stretchesOf, unitAt, unitsOf } from "../src/lib/words";

const text = "Ein Mann  steht.\nEr winkt.";

test("units are between spaces alone, and a line break is inside one", () => {
  expect(unitsOf(text).map(({ begin, end }) => text.slice(begin, end))).toEqual(["Ein", "Mann", "steht.\nEr", "winkt."]);
  expect(unitsOf("")).toEqual([]);
  expect(unitsOf("   ")).toEqual([]);
  expect(unitsOf(" a\u00a0b\t")).toHaveLength(1);
});

test("stretches joined are the text, whatever it is", () => {
  for (const each of [text, "", "  ", "\n\n", " a ", "猫だ。 犬", "a\u2028b", "𝒳 y"])
    expect(stretchesOf(each).map((stretch) => stretch.text).join("")).toBe(each);
});

test("a line break parts stretches but not units", () => {
  const words = stretchesOf(text).filter((stretch) => stretch.unit !== null);
  expect(words.map((stretch) => [stretch.text, stretch.unit])).toEqual([
    ["Ein", 0],
    ["Mann", 1],
    ["steht.", 2],
    ["Er", 2],
    ["winkt.", 3],
  ]);
});

test("each word has its own confidence, in order, also when it occurs twice", () => {
  const words = [
    { text: "die", confidence: 0.1 },
    { text: "der", confidence: 0.2 },
    { text: "die", confidence: 0.3 },
  ];
  const told = stretchesOf("die der die", words).filter((stretch) => stretch.unit !== null);
  expect(told.map((stretch) => stretch.confidence)).toEqual([0.1, 0.2, 0.3]);
});

test("in a script without spaces a unit has several words", () => {
  const told = stretchesOf("猫だ。", [
    { text: "猫", confidence: 0.9 },
    { text: "だ。", confidence: 0.4 },
  ]);
  expect(told).toEqual([
    { text: "猫", begin: 0, end: 1, unit: 0, confidence: 0.9 },
    { text: "だ。", begin: 1, end: 3, unit: 0, confidence: 0.4 },
  ]);
});

test("a word that is not there shifts none of the others", () => {
  const words = [
    { text: "a", confidence: 0.1 },
    { text: "zz", confidence: 0.2 },
    { text: "b", confidence: 0.3 },
  ];
  expect(placesOf("a b", words)).toEqual([{ begin: 0, end: 1 }, null, { begin: 2, end: 3 }]);
  const told = stretchesOf("a b", words).filter((stretch) => stretch.unit !== null);
  expect(told.map((stretch) => stretch.confidence)).toEqual([0.1, 0.3]);
});

test("a word without a confidence is not one with none told", () => {
  const [first, , second] = stretchesOf("a b", [{ text: "a", confidence: null }]);
  expect(first!.confidence).toBeNull();
  expect(second).not.toHaveProperty("confidence");
});

test("what is lit on one side is what the pairs say, in both directions", () => {
  const links = new Links([
    [0, 0],
    [2, 1],
    [2, 3],
    [4, 3],
  ]);
  expect(litBy(links, "source", 2)).toEqual({ source: new Set([2]), target: new Set([1, 3]) });
  expect(litBy(links, "target", 3)).toEqual({ source: new Set([2, 4]), target: new Set([3]) });
  expect(litBy(links, "source", 9)).toEqual({ source: new Set([9]), target: new Set() });
});

test("a caret is at the word that it stands in or right after", () => {
  expect([0, 2, 3, 4, 9, 10].map((offset) => unitAt("Ein Mann  steht", offset))).toEqual([0, 0, 0, 1, null, 2]);
});

test("words are listed as one reads them", () => {
  expect([[], ["a"], ["a", "b"], ["a", "b", "c"]].map((words) => listed(words))).toEqual(["", "a", "a and b", "a, b and c"]);
});
