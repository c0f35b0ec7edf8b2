// The page shown while the service does not respond or cannot check the session: says which of the two is the case, and
// retries automatically.
import { useEffect, useState } from "react";
import { Refusal } from "../api/problem";
import { Button } from "../controls/button";
import { useSecondsUntil } from "../controls/countdown";
import { useLocalization } from "../messages/localization";
import { AuthLayout } from "../features/sign-in";

/** Milliseconds between automatic retries; random, so that waiting clients do not retry at the same time. */
const retryDelay = () => 5_000 + Math.random() * 5_000;

export function Unreachable({ refusal, again }: { refusal: unknown; again: () => void }) {
  const { t } = useLocalization();
  const known = refusal instanceof Refusal ? refusal : null;
  const [next, setNext] = useState(() => Date.now() + Math.max(known?.retryAfter ?? 0, retryDelay()));
  const left = useSecondsUntil(next);
  useEffect(() => {
    if (left > 0) return;
    again();
    setNext(Date.now() + retryDelay());
  }, [left, again]);
  useEffect(() => {
    window.addEventListener("online", again);
    return () => window.removeEventListener("online", again);
  }, [again]);
  const offline = known?.status === 0 && !navigator.onLine;
  return (
    <AuthLayout>
      <title>{t("app.name")}</title>
      <h1 className="text-xl font-semibold">
        {t(
          offline
            ? "pages.connection.offline"
            : known?.status === 0
              ? "pages.connection.unreachable"
              : known?.status === 429
                ? "pages.connection.limited"
                : "pages.connection.unavailable",
        )}
      </h1>
      <p className="mt-2 text-soft">{t("pages.connection.description")}</p>
      <div className="mt-6 flex items-center gap-4">
        <Button look="primary" onClick={again}>
          {t("pages.connection.retry")}
        </Button>
        <span aria-hidden className="text-sm text-faint">
          {t("pages.connection.next_retry", { seconds: left })}
        </span>
      </div>
    </AuthLayout>
  );
}
