/** Links into the page: /?source=en&target=de&q=text, with &tags=formal,ui where a model is told them, opens it with that text; #/x is a view of it. */

export interface Wanted {
  source: string | null;
  target: string | null;
  text: string | null;
  tags: string[];
}

export const LONGEST_LINK = 2000; // characters; longer ones are cut by chats and proxies

export function wantedBy(search: string): Wanted {
  const given = new URLSearchParams(search);
  return { source: given.get("source"), target: given.get("target"), text: given.get("q"), tags: (given.get("tags") ?? "").split(",").filter(Boolean) };
}

/** linkTo("http://a/", ...) -> "http://a/?source=en&target=de&q=a+b"; null when it would be too long to be passed on. */
export function linkTo(page: string, source: string, target: string, text: string, tags: readonly string[] = []): string | null {
  const url = new URL(page);
  url.search = new URLSearchParams({ source, target, ...(tags.length ? { tags: tags.join(",") } : {}), q: text }).toString();
  url.hash = "";
  return url.href.length > LONGEST_LINK ? null : url.href;
}

export interface Route {
  view: string; // "" is the translate page
  values: URLSearchParams;
}

/** routeOf("#/x?m=en-de") -> view "x", values m=en-de. Views live in the hash, so that a page saved as a file has them too. */
export function routeOf(hash: string): Route {
  const [, view = "", values = ""] = /^#\/([^?]*)\??(.*)$/.exec(hash) ?? [];
  return { view, values: new URLSearchParams(values) };
}
