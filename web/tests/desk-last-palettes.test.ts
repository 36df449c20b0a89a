/** Palettes for eyes of every kind: steps must differ for those who do not tell red from green, and in print without colour. */

import { describe, expect, test } from "vitest";

import { CATEGORIES, luminance, rgbOf, type Palette } from "../src/desk/colours";

type Triple = readonly [number, number, number];

// What red, green and blue become, in linear light, when one kind of cone is absent (Machado, Oliveira and Fernandes 2009, severity 1.0).
const SIGHT: Record<string, readonly Triple[]> = {
  "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

const linear = (value: number): number => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);

/** A colour as such an eye sees it, in CIE L*a*b* under D65. */
function lab(colour: Triple, sight: readonly Triple[]): Triple {
  const light = colour.map((value) => linear(value / 255)) as unknown as Triple;
  const [r, g, b] = sight.map((row) => Math.min(1, Math.max(0, row[0] * light[0] + row[1] * light[1] + row[2] * light[2]))) as unknown as Triple;
  const f = (t: number): number => (t > 216 / 24389 ? Math.cbrt(t) : (24389 / 27) * (t / 116) + 16 / 116);
  const [x, y, z] = [
    f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047),
    f(0.2126729 * r + 0.7151522 * g + 0.072175 * b),
    f((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883),
  ];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const distance = (a: Triple, b: Triple): number => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
const steps = (palette: Palette, count: number): Triple[] => Array.from({ length: count }, (_, at) => rgbOf(palette, at / (count - 1)));
const parsed = (hex: string): Triple => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Triple;

/** Does the lightness go one way from end to end? Over four steps, for a byte is coarse. */
function keepsOrder(colours: readonly Triple[], sight: readonly Triple[]): boolean {
  const lightness = colours.map((colour) => lab(colour, sight)[0]);
  const up = lightness.at(-1)! > lightness[0]! ? 1 : -1;
  return lightness.every((value, at) => at < 4 || up * (value - lightness[at - 4]!) > 0);
}

test("a rainbow is found out: its middle is lighter than both ends", () => {
  const rainbow = Array.from({ length: 64 }, (_, at): Triple => {
    const hump = (middle: number): number => 255 * Math.min(1, Math.max(0, 1.5 - Math.abs(4 * (at / 63) - middle)));
    return [hump(3), hump(2), hump(1)];
  });
  for (const sight of Object.values(SIGHT)) expect(keepsOrder(rainbow, sight)).toBe(false);
});

test("the eye of this test sees what is known: red and green meet for some, blue and yellow never do for them", () => {
  const apart = (a: string, b: string, sight: string): number => distance(lab(parsed(a), SIGHT[sight]!), lab(parsed(b), SIGHT[sight]!));
  expect(lab([255, 255, 255], SIGHT["all cones"]!).map((value) => Math.abs(Math.round(value)))).toEqual([100, 0, 0]);
  expect(lab([255, 0, 0], SIGHT["all cones"]!)[0]).toBeCloseTo(53.24, 1);
  expect(apart("#a05000", "#508000", "all cones")).toBeGreaterThan(45);
  expect(apart("#a05000", "#508000", "deuteranopia")).toBeLessThan(15);
  expect(apart("#0000ff", "#ffff00", "deuteranopia")).toBeGreaterThan(100);
});

describe.each(["cividis", "viridis", "greys"] as const)("%s", (palette) => {
  test.each(Object.keys(SIGHT))("ten steps are told apart with %s", (sight) => {
    const seen = steps(palette, 10).map((colour) => lab(colour, SIGHT[sight]!));
    for (let at = 1; at < seen.length; at++) expect(distance(seen[at - 1]!, seen[at]!), `step ${at}`).toBeGreaterThan(5);
  });

  test.each(Object.keys(SIGHT))("more is always lighter, or always darker, with %s", (sight) => {
    expect(keepsOrder(steps(palette, 64), SIGHT[sight]!)).toBe(true);
  });

  test("it uses most of the way from dark to light", () => {
    const ends = [luminance(rgbOf(palette, 0)), luminance(rgbOf(palette, 1))];
    expect((Math.max(...ends) + 0.05) / (Math.min(...ends) + 0.05)).toBeGreaterThan(10);
  });
});

describe("the diverging palette", () => {
  test.each(Object.keys(SIGHT))("below and above zero are never alike with %s", (sight) => {
    for (const share of [0.1, 0.25, 0.5, 0.75, 1]) {
      const [below, above] = [rgbOf("diverging", 0.5 - share / 2), rgbOf("diverging", 0.5 + share / 2)].map((c) => lab(c, SIGHT[sight]!)) as [Triple, Triple];
      expect(distance(below, above), `at ${share}`).toBeGreaterThan(sight === "tritanopia" ? 8 : 15);
    }
  });

  test("zero is lighter than anything else", () => {
    const middle = luminance(rgbOf("diverging", 0.5));
    for (const share of [0, 0.2, 0.4, 0.6, 0.8, 1]) expect(luminance(rgbOf("diverging", share))).toBeLessThan(middle);
  });
});

test.each(["deuteranopia", "protanopia"])("the first six categories are told apart with %s", (sight) => {
  const seen = CATEGORIES.slice(0, 6).map((hex) => lab(parsed(hex), SIGHT[sight]!));
  for (const [at, one] of seen.entries()) for (const other of seen.slice(at + 1)) expect(distance(one, other)).toBeGreaterThan(10);
});
