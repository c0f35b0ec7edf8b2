// Prints a document alone: while the browser prints, a copy of it is the only thing on the page.
import { useEffect, type RefObject } from "react";
import "./print.css";

/**
 * Prints the element instead of the page, also with the browser's own command, while the component is shown. The copy stays
 * until the end: paper is narrower than the window, so that other components may be shown meanwhile.
 */
export function usePrint(element: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const before = () => {
      if (element.current === null) return;
      const copy = document.createElement("div");
      copy.dataset["print"] = "";
      copy.append(element.current.cloneNode(true));
      document.body.append(copy);
      document.documentElement.dataset["printing"] = "";
      const after = () => {
        copy.remove();
        delete document.documentElement.dataset["printing"];
      };
      window.addEventListener("afterprint", after, { once: true });
    };
    window.addEventListener("beforeprint", before);
    return () => window.removeEventListener("beforeprint", before);
  }, [element]);
}
