// The layout of the pages without a session: the sign-in page and the page for an unreachable service.
import type { ReactNode } from "react";
import bird from "../../style/bird.svg";
import { QuietSelect } from "../../controls/select-list";
import { useLocalization } from "../../messages/localization";
import { languages } from "../../messages/catalog";

/** The name of the app above the content, the choice of the language below. */
export function AuthLayout({ children }: { children: ReactNode }) {
  const { t, language, setLanguage } = useLocalization();
  return (
    <div className="flex h-dvh flex-col overflow-y-auto ps-[max(1.25rem,env(safe-area-inset-left))] pe-[max(1.25rem,env(safe-area-inset-right))]">
      <main className="m-auto w-full max-w-100 py-10">
        <p className="mb-6 flex flex-col items-center gap-2 text-lg font-semibold">
          <img src={bird} alt="" width={120} height={84} className="short:hidden" />
          {t("app.name")}
        </p>
        <div className="sm:rounded-lg sm:border sm:border-line sm:bg-raised sm:p-8">{children}</div>
      </main>
      <footer className="flex justify-center pb-[max(1rem,env(safe-area-inset-bottom))]">
        <QuietSelect
          icon="globe"
          label={t("pages.language")}
          value={language}
          onChange={setLanguage}
          options={Object.entries(languages).map(([value, { name }]) => ({ value, label: name, lang: value }))}
        />
      </footer>
    </div>
  );
}
