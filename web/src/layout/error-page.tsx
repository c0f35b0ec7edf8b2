// The error page, shown when rendering failed or a part of the app could not be loaded, for example after an upgrade of
// the service.
import { Component, type ErrorInfo, type ReactNode } from "react";
import { Button } from "../controls/button";
import { useLocalization } from "../messages/localization";

export function ErrorPage() {
  const { t } = useLocalization();
  return (
    <div role="alert" className="m-auto w-full max-w-lg px-6 py-10">
      <h1 className="text-xl font-semibold">{t("pages.error.title")}</h1>
      <p className="mt-2 text-soft">{t("pages.error.description")}</p>
      <Button look="primary" icon="retry" className="mt-6" onClick={() => location.reload()}>
        {t("pages.error.reload")}
      </Button>
    </div>
  );
}

/** An error boundary: shows the error page in place of its children. The page around it stays. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override componentDidCatch(error: Error, info: ErrorInfo) {
    console.error(error, info.componentStack);
  }

  override render() {
    return this.state.failed ? <ErrorPage /> : this.props.children;
  }
}
