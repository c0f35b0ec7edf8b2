// The OpenID providers that one may sign in with, as the document names them.
import { useSpeech } from "../words/speech";

export const providers: readonly string[] = (document.querySelector<HTMLMetaElement>('meta[name="turnstone-providers"]')?.content ?? "").split(" ").filter((name) => /^[a-z0-9][a-z0-9_-]*$/i.test(name));

/** returnTo: a path of the app. beside: in a tab of its own, so that what is typed here stays. */
export function Providers({ returnTo, beside = false }: { returnTo: string; beside?: boolean }) {
  const { say } = useSpeech();
  if (providers.length === 0) return null;
  return (
    <div className="flex flex-col gap-2">
      <p className="text-center text-sm text-faint">{say("rooms.providers.or")}</p>
      {providers.map((name) => (
        <a
          key={name}
          href={`/auth/oidc/${name}/start?return_to=${encodeURIComponent(returnTo)}`}
          {...(beside ? { target: "_blank", rel: "noopener" } : {})}
          className="inline-flex min-h-11 items-center justify-center rounded-md border border-edge bg-raised px-3 text-sm font-medium hover:bg-hover"
        >
          {say("rooms.providers.with", { provider: name.charAt(0).toUpperCase() + name.slice(1) })}
        </a>
      ))}
    </div>
  );
}
