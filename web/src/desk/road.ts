/** The way through the views: back and forward of the browser are undo and redo. */

/** A place on the way: how many steps lie before it, and what the last of them did. */
export interface Step {
  depth: number;
  what: string;
}

export interface Road {
  push(hash: string, step: Step): void;
  replace(hash: string, step: Step): void;
  back(): void;
  forward(): void;
}

export class BrowserRoad implements Road {
  push(hash: string, step: Step): void {
    try {
      history.pushState({ desk: step }, "", hash);
    } catch {
      location.hash = hash; // a browser that lets no file write its history
    }
  }

  replace(hash: string, step: Step): void {
    try {
      history.replaceState({ desk: step }, "", hash);
    } catch {
      location.replace(hash);
    }
  }

  back(): void {
    history.back();
  }

  forward(): void {
    history.forward();
  }
}

/** What the browser kept with the place where it is now. */
export function stepOf(state: unknown): Step {
  const { depth, what } = ((state as { desk?: Partial<Step> } | null)?.desk ?? {}) as Partial<Step>;
  return { depth: Number.isInteger(depth) ? depth! : 0, what: typeof what === "string" ? what : "" };
}
