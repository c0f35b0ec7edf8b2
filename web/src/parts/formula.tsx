// A formula. KaTeX comes with the first one; until then, and for what it cannot read, the formula stands as it was written.
import { memo, useLayoutEffect, useRef } from "react";
import type { KatexOptions } from "katex";

const longest = 2_000;

type Render = (tex: string, element: HTMLElement, options: KatexOptions) => void;
let render: Render | null = null;
let coming: Promise<Render> | null = null;

function load(): Promise<Render> {
  coming ??= Promise.all([import("katex"), import("katex/dist/katex.min.css")]).then(
    ([katex]) => (render = katex.default.render),
    (failure: unknown) => {
      coming = null; // with the next formula again
      throw failure;
    },
  );
  return coming;
}

export const Formula = memo(function Formula({ tex, display }: { tex: string; display: boolean }) {
  const place = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const draw = (by: Render) => {
      try {
        // Where it does not throw, KaTeX marks an error by a style attribute, which the content security policy forbids.
        by(tex, element, { displayMode: display, throwOnError: true, strict: "ignore", trust: false, maxSize: 30, maxExpand: 500 });
      } catch {
        element.textContent = tex;
      }
    };
    if (tex.length > longest) element.textContent = tex;
    else if (render !== null) draw(render);
    else {
      element.textContent = tex;
      let current = true;
      load().then(
        (by) => current && draw(by),
        () => {}, // it stands as it was written
      );
      return () => void (current = false);
    }
    return undefined;
  }, [tex, display]);
  return <span ref={place} dir="ltr" className={display ? "block overflow-x-auto overflow-y-hidden py-2 text-center" : "inline-block max-w-full overflow-x-auto overflow-y-hidden align-bottom"} />;
});
