// A formula, rendered by KaTeX. KaTeX is loaded with the first formula. Until it is loaded, and for a formula that is
// too long or that KaTeX cannot parse, the TeX source is shown.
import { memo, useLayoutEffect, useRef } from "react";
import type { KatexOptions } from "katex";
import { loadable } from "../controls/loadable";

const maxSourceLength = 2_000; // characters

type Render = (tex: string, element: HTMLElement, options: KatexOptions) => void;
const katex = loadable(async (): Promise<Render> => {
  const [module] = await Promise.all([import("katex"), import("katex/dist/katex.min.css")]);
  return module.default.render;
});

export const Formula = memo(function Formula({ tex, display }: { tex: string; display: boolean }) {
  const container = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const element = container.current;
    if (element === null) return;
    const draw = (renderer: Render) => {
      try {
        // Without throwOnError, KaTeX marks an error with a style attribute, which the content security policy forbids.
        renderer(tex, element, {
          displayMode: display,
          throwOnError: true,
          strict: "ignore",
          trust: false,
          maxSize: 30,
          maxExpand: 500,
        });
      } catch {
        element.textContent = tex;
      }
    };
    if (tex.length > maxSourceLength) element.textContent = tex;
    else if (katex.value !== null) draw(katex.value);
    else {
      element.textContent = tex;
      let current = true;
      katex.load().then(
        (renderer) => current && draw(renderer),
        () => {}, // the source stays visible
      );
      return () => void (current = false);
    }
    return undefined;
  }, [tex, display]);
  return (
    <span
      ref={container}
      dir="ltr"
      className={
        display
          ? "block overflow-x-auto overflow-y-hidden py-2 text-center"
          : "-me-0.5 inline-block max-w-full overflow-x-auto overflow-y-hidden pe-0.5 align-bottom" // KaTeX draws 2px too far
      }
    />
  );
});
