/** Who is signed in decides between the gate and the shell; the routes name the pages. */
import { NavLink, Route, Routes, useLocation } from "react-router";
import { post, rememberCsrfToken } from "./api/client";
import type { Session, SignedIn } from "./api/types";
import { useQuery } from "./api/use-query";
import { Empty, Loading } from "./design/components";
import mark from "./design/mark.svg";
import { EnvironmentPage } from "./pages/environment";
import { EnvironmentsPage } from "./pages/environments";
import { HomePage } from "./pages/home";
import { KeysPage } from "./pages/keys";
import { LoginRequestPage } from "./pages/login-request";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { SignInPage } from "./pages/sign-in";
import { WalletPage } from "./pages/wallet";

const PAGES = [
  ["/", "Home"],
  ["/environments", "Environments"],
  ["/runs", "Runs"],
  ["/wallet", "Wallet"],
  ["/keys", "Keys"],
] as const;

export function App() {
  const session = useQuery<Session>("/auth/session");
  if (!session.data) return <main className="gate">{session.error ? <p>{session.error.message}</p> : <Loading what="your session" />}</main>;
  rememberCsrfToken(session.data.csrf_token);
  const { user } = session.data;
  if (!user) return <SignInPage onDone={session.reload} />;
  return <Shell session={{ ...session.data, user }} onSignOut={session.reload} />;
}

function Shell({ session, onSignOut }: { session: SignedIn; onSignOut: () => void }) {
  const signOut = () => post("/auth/sign-out").then(onSignOut, onSignOut);
  return (
    <div className="shell">
      <aside className="side">
        <NavLink to="/" className="brand">
          <img src={mark} alt="" />
          Rootstock
        </NavLink>
        <nav className="nav" aria-label="Main">
          {PAGES.map(([to, label]) => (
            <NavLink key={to} to={to} end={to === "/"}>
              {label}
            </NavLink>
          ))}
        </nav>
        <div className="who">
          <span>{session.user.email}</span>
          <span>team {session.teams[0]?.slug}</span>
          <button type="button" className="button" onClick={signOut}>
            Sign out
          </button>
        </div>
      </aside>
      <main className="page" key={useLocation().pathname}>
        <Routes>
          <Route path="/" element={<HomePage session={session} />} />
          <Route path="/environments" element={<EnvironmentsPage />} />
          <Route path="/environments/:owner/:name" element={<EnvironmentPage />} />
          <Route path="/runs" element={<RunsPage />} />
          <Route path="/runs/:id" element={<RunPage />} />
          <Route path="/wallet" element={<WalletPage />} />
          <Route path="/keys" element={<KeysPage />} />
          <Route path="/dashboard/tokens/challenge" element={<LoginRequestPage />} />
          {/* The public client prints these addresses. */}
          <Route path="/dashboard/environments/:owner/:name" element={<EnvironmentPage />} />
          <Route path="/dashboard/training/:id" element={<RunPage />} />
          <Route path="*" element={<Empty title="There is no such page." />} />
        </Routes>
      </main>
    </div>
  );
}
