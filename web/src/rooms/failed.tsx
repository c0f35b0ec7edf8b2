// What is shown when a page broke, or a part of the app could not be loaded, as after the service was renewed.
import { Component, type ErrorInfo, type ReactNode } from "react";
import { Button } from "../controls/button";
import { useSpeech } from "../words/speech";

export function Failed() {
  const { say } = useSpeech();
  return (
    <div role="alert" className="m-auto w-full max-w-lg px-6 py-10">
      <h1 className="text-xl font-semibold">{say("rooms.failed.title")}</h1>
      <p className="mt-2 text-soft">{say("rooms.failed.why")}</p>
      <Button look="primary" icon="retry" className="mt-6" onClick={() => location.reload()}>
        {say("rooms.failed.reload")}
      </Button>
    </div>
  );
}

/** Catches what breaks within; the page around it stays. */
export class Guard extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override componentDidCatch(error: Error, info: ErrorInfo) {
    console.error(error, info.componentStack);
  }

  override render() {
    return this.state.failed ? <Failed /> : this.props.children;
  }
}
