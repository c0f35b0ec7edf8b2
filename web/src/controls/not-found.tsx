// The page for a URL that does not exist for this account.
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, type ReactNode } from "react";
import { useLocalization } from "../messages/localization";
import { PageTitle } from "./page-title";

/** children: what follows the description. */
export function NotFound({ children }: { children?: ReactNode }) {
  const { t } = useLocalization();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <div className="m-auto w-full max-w-lg px-6 py-10">
      <PageTitle name={t("pages.not_found.title")} />
      <h1 ref={heading} tabIndex={-1} className="text-xl font-semibold outline-none">
        {t("pages.not_found.title")}
      </h1>
      <p className="mt-2 text-soft">{t("pages.not_found.description")}</p>
      {children}
      <Link
        to="/"
        className="mt-6 inline-flex min-h-9 items-center rounded-md bg-accent px-3 text-sm font-medium text-accent-ink hover:brightness-110 pointer-coarse:min-h-11"
      >
        {t("pages.not_found.start")}
      </Link>
    </div>
  );
}

/** For paths that no page has. */
export const UnknownPath = () => <NotFound />;
