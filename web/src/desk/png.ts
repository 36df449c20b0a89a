/** A drawing as pixels. */

const LARGEST = 16_000; // px on a side: more than that browsers refuse to draw

/** The size that an SVG states in its first element. */
export function sizeOf(svg: string): { width: number; height: number } {
  const found = /<svg[^>]*\swidth="([\d.]+)"[^>]*\sheight="([\d.]+)"/.exec(svg);
  return { width: Number(found?.[1] ?? 0), height: Number(found?.[2] ?? 0) };
}

/** As large as asked, or as large as it may be. fitting(10_000, 100, 3) -> 1.6 */
export function fitting(width: number, height: number, scale: number): number {
  return Math.min(scale, LARGEST / Math.max(width, height, 1));
}

/** A data address and no blob: the policy of the page lets in pictures only from there. */
export async function png(svg: string, scale: number): Promise<Blob> {
  const { width, height } = sizeOf(svg);
  const by = fitting(width, height, scale);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * by);
  canvas.height = Math.round(height * by);
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser draws no pixels");
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large for this browser"))), "image/png"),
  );
}
