// The beginning: who is signed in decides whether there is a console at all. Nobody is sent to the issuer's page and back.
import "@fontsource/ibm-plex-sans/latin-400.css";
import "@fontsource/ibm-plex-sans/latin-600.css";
import "@fontsource/ibm-plex-mono/latin-400.css";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/tables.css";
import "./style/run.css";
import "./style/panels.css";
import "./style/forms.css";
import "./style/usage.css";

import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError, currentSession, leaveIfSignedOut, signInAddress } from "./api/client";
import { makeRouter } from "./router";
import { Problem } from "./ui/Feedback";

const client = new QueryClient({
  queryCache: new QueryCache({ onError: leaveIfSignedOut }),
  mutationCache: new MutationCache({ onError: leaveIfSignedOut }),
  defaultOptions: {
    queries: {
      staleTime: 2000,
      retry: (count, error) => count < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
    },
  },
});

const root = createRoot(document.getElementById("root") as HTMLElement);

async function begin() {
  if (location.pathname === "/console/signed-out") {
    root.render(<SignedOut />);
    return;
  }
  const session = await currentSession();
  if (!session) {
    location.replace(signInAddress());
    return;
  }
  root.render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={makeRouter(client)} />
      </QueryClientProvider>
    </StrictMode>,
  );
}

function SignedOut() {
  return (
    <main className="alone">
      <h1>You are signed out</h1>
      <p>The session has ended here and on the server.</p>
      <a className="button primary" href="/console/login">
        Sign in again
      </a>
    </main>
  );
}

begin().catch((error: unknown) => {
  root.render(
    <main className="alone">
      <Problem error={error} again={() => location.reload()} />
    </main>,
  );
});
