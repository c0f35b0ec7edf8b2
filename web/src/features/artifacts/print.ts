// Prints a document alone: while the browser prints, a copy of it is the only thing on the page.
import { useEffect, type RefObject } from "react";
import "./print.css";

/** Prints the element instead of the page, also with the browser's own command, while the component is shown. */
export function usePrint(element: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    let copy: HTMLElement | null = null;
    const before = () => {
      if (element.current === null || copy !== null) return;
      copy = document.createElement("div");
      copy.dataset["print"] = "";
      copy.append(element.current.cloneNode(true));
      document.body.append(copy);
      document.documentElement.dataset["printing"] = "";
    };
    const after = () => {
      copy?.remove();
      copy = null;
      delete document.documentElement.dataset["printing"];
    };
    window.addEventListener("beforeprint", before);
    window.addEventListener("afterprint", after);
    return () => {
      window.removeEventListener("beforeprint", before);
      window.removeEventListener("afterprint", after);
      after();
    };
  }, [element]);
}
