// A row of the settings about the data of the account: what can be done, its explanation, and the button that does it.
import type { ReactNode } from "react";

interface DataRowProps {
  title: string;
  hint: string;
  action: ReactNode;
  /** Shown below; each child has a margin at its top. */
  children?: ReactNode;
}

export function DataRow({ title, hint, action, children }: DataRowProps) {
  return (
    <div className="flex flex-col py-3 text-sm">
      <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-3">
        <div className="min-w-0 grow basis-64">
          <h3 className="font-medium">{title}</h3>
          <p className="text-soft">{hint}</p>
        </div>
        {action}
      </div>
      {children}
    </div>
  );
}
