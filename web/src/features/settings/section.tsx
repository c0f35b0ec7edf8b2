// A section of the settings page: its heading, which a link can address, and its rows in a frame.
import type { ReactNode } from "react";

export function Section({
  id,
  title,
  hint,
  children,
}: {
  id: string;
  title: string;
  hint?: string;
  children: ReactNode;
}) {
  return (
    <section aria-labelledby={`${id}-heading`} className="flex flex-col gap-3">
      <div>
        <h2 id={`${id}-heading`} className="font-semibold">
          {title}
        </h2>
        {hint !== undefined && <p className="text-sm text-soft">{hint}</p>}
      </div>
      <div className="divide-y divide-line rounded-lg border border-line bg-raised px-4">{children}</div>
    </section>
  );
}
