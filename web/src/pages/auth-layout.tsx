// The layout of the pages without a session: the sign-in page and the page for an unreachable service.
import type { ReactNode } from "react";
import mark from "../style/mark.svg";
import { Select } from "../controls/form-controls";
import { useLocalization } from "../messages/localization";
import { languages } from "../messages/catalog";

/** The name of the app above the content, the choice of the language below. */
export function AuthLayout({ children }: { children: ReactNode }) {
  const { t, language, setLanguage } = useLocalization();
  return (
    <div className="flex h-dvh flex-col overflow-y-auto ps-[max(1.25rem,env(safe-area-inset-left))] pe-[max(1.25rem,env(safe-area-inset-right))]">
      <main className="m-auto w-full max-w-88 py-10">
        <p className="mb-8 flex items-center gap-2.5 font-semibold">
          <img src={mark} alt="" className="size-7" />
          {t("app.name")}
        </p>
        {children}
      </main>
      <footer className="flex justify-center pb-[max(1rem,env(safe-area-inset-bottom))]">
        <Select
          quiet
          label={t("pages.language")}
          value={language}
          onChange={setLanguage}
          options={Object.entries(languages).map(([value, { name }]) => ({ value, label: name, lang: value }))}
        />
      </footer>
    </div>
  );
}
