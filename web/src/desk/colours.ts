/** Colours of numbers. All palettes keep their order for every kind of colour vision: the lightness alone tells it. */

export type Palette = "cividis" | "viridis" | "greys" | "diverging";
type Colour = readonly [red: number, green: number, blue: number];

// Nine stops of each, from matplotlib's tables. Values between are mixed.
const STOPS: Readonly<Record<Palette, readonly string[]>> = {
  cividis: ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"],
  viridis: ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"],
  greys: ["ffffff", "e8e8e8", "cfcfcf", "b5b5b5", "9a9a9a", "808080", "666666", "4b4b4b", "2f2f2f", "111111"],
  // Blue, neutral, orange: told apart without red or green.
  diverging: ["0b3c7a", "2166ac", "4f93c9", "9cc6e3", "f2f1ec", "f8c794", "ec9440", "c76211", "7f3b08"],
};

/** Okabe and Ito's colours for things that have no order. */
export const CATEGORIES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000"] as const;

const STEPS = 256;
const tables = new Map<Palette, Uint8Array>();

/** 256 colours, three bytes each. */
export function tableOf(palette: Palette): Uint8Array {
  let table = tables.get(palette);
  if (!table) {
    const stops = STOPS[palette].map(parsed);
    table = new Uint8Array(STEPS * 3);
    for (let i = 0; i < STEPS; i++) table.set(between(stops, i / (STEPS - 1)), i * 3);
    tables.set(palette, table);
  }
  return table;
}

/** colourOf("greys", 1) -> "rgb(17 17 17)"; the share is cut at 0 and 1. */
export function colourOf(palette: Palette, share: number): string {
  return `rgb(${rgbOf(palette, share).join(" ")})`;
}

export function rgbOf(palette: Palette, share: number): [number, number, number] {
  const table = tableOf(palette);
  const at = 3 * Math.round(Math.min(1, Math.max(0, share)) * (STEPS - 1));
  return [table[at]!, table[at + 1]!, table[at + 2]!];
}

/** Black or white, whichever is read more easily upon the colour (contrast of WCAG 2). */
export function inkOn(palette: Palette, share: number): "#000" | "#fff" {
  const light = luminance(rgbOf(palette, share));
  return (light + 0.05) / 0.05 > 1.05 / (light + 0.05) ? "#000" : "#fff";
}

export function luminance([red, green, blue]: Colour): number {
  const linear = (value: number): number => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

function parsed(hex: string): Colour {
  return [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Colour;
}

function between(stops: readonly Colour[], share: number): number[] {
  const at = share * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  return [0, 1, 2].map((i) => Math.round(stops[low]![i]! + (at - low) * (stops[low + 1]![i]! - stops[low]![i]!)));
}
