// A section of a page with its heading.
import type { ReactNode } from "react";

export function Section({ title, hint, children }: { title: string; hint?: string; children: ReactNode }) {
  return (
    <section className="flex flex-col gap-5">
      <div>
        <h2 className="text-lg font-semibold">{title}</h2>
        {hint !== undefined && <p className="text-sm text-soft">{hint}</p>}
      </div>
      {children}
    </section>
  );
}
