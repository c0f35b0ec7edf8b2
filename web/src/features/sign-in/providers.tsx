// Links to sign in with the OpenID providers that a meta tag of the document names.
import { useMessages } from "../../messages/localization";
import { signingInMessages } from "../../messages/signing-in";

export const providers: readonly string[] = (
  document.querySelector<HTMLMetaElement>('meta[name="turnstone-providers"]')?.content ?? ""
)
  .split(" ")
  .filter((name) => /^[a-z0-9][a-z0-9_-]*$/i.test(name));

/** The name of a provider, as a page shows it. */
export const titleOf = (provider: string): string => provider.charAt(0).toUpperCase() + provider.slice(1);

/** returnTo: path of the app after the sign-in. newTab: opens a new tab, so that text typed on this page is kept. */
export function ProviderLinks({ returnTo, newTab = false }: { returnTo: string; newTab?: boolean }) {
  const t = useMessages(signingInMessages);
  if (providers.length === 0) return null;
  return (
    <div className="flex flex-col gap-2">
      <p className="text-center text-sm text-faint">{t("pages.providers.or")}</p>
      {providers.map((name) => (
        <a
          key={name}
          href={`/auth/oidc/${name}/start?return_to=${encodeURIComponent(returnTo)}`}
          {...(newTab ? { target: "_blank", rel: "noopener" } : {})}
          className="inline-flex min-h-11 items-center justify-center rounded-md border border-edge bg-raised px-3 text-sm font-medium hover:bg-hover"
        >
          {t("pages.providers.with", { provider: titleOf(name) })}
        </a>
      ))}
    </div>
  );
}
