/** Who is signed in decides between the gate and the shell; the routes name the pages, each loaded when it is opened. */
import { type ComponentType, Suspense, lazy, useEffect } from "react";
import { Link, Navigate, Route, Routes, useLocation, useParams } from "react-router";
import { actAs } from "./api/client";
import { useQuery } from "./api/use-query";
import { Empty } from "./design/empty";
import { Heading } from "./design/heading";
import { Problem } from "./design/notice";
import { Skeleton } from "./design/skeleton";
import { HomePage } from "./pages/home";
import { SignInPage } from "./pages/sign-in";
import { SessionProvider } from "./session";
import { Shell } from "./shell";

const page = (load: () => Promise<ComponentType>) => lazy(async () => ({ default: await load() }));

const EnvironmentsPage = page(async () => (await import("./pages/environments")).EnvironmentsPage);
const EnvironmentPage = page(async () => (await import("./pages/environment")).EnvironmentPage);
const DatasetsPage = page(async () => (await import("./pages/datasets")).DatasetsPage);
const RunsPage = page(async () => (await import("./pages/runs")).RunsPage);
const RunPage = page(async () => (await import("./pages/run")).RunPage);
const ModelsPage = page(async () => (await import("./pages/models")).ModelsPage);
const ChatPage = page(async () => (await import("./pages/chat")).ChatPage);
const EvaluationsPage = page(async () => (await import("./pages/evaluations")).EvaluationsPage);
const EvaluationPage = page(async () => (await import("./pages/evaluation")).EvaluationPage);
const ComparisonPage = page(async () => (await import("./pages/comparison")).ComparisonPage);
const BillingPage = page(async () => (await import("./pages/billing")).BillingPage);
const KeysPage = page(async () => (await import("./pages/keys")).KeysPage);
const TeamPage = page(async () => (await import("./pages/team")).TeamPage);
const LoginRequestPage = page(async () => (await import("./pages/login-request")).LoginRequestPage);

export function App() {
  const session = useQuery("/api/v1/auth/session", {});
  if (!session.data) {
    return <main className="gate"><h1 className="hidden">Rootstock</h1>{session.problem ? <Problem of={session.problem} /> : <Skeleton what="your session" lines={0} />}</main>;
  }
  actAs({ csrfToken: session.data.csrf_token });
  const { user } = session.data;
  if (!user) return <SignInPage onDone={session.reload} />;
  return (
    <SessionProvider session={{ ...session.data, user }} onChange={session.reload}>
      <Shell><Pages /></Shell>
    </SessionProvider>
  );
}

function Pages() {
  const { pathname } = useLocation();
  // In braces: newer browsers answer a promise, which React would take for a clean-up.
  useEffect(() => {
    scrollTo(0, 0);
  }, [pathname]);
  return (
    // A page begins anew with its address: nothing of one run may be seen on another.
    <Suspense key={pathname} fallback={<Skeleton what="the page" lines={6} />}>
      <Routes>
        <Route path="/" element={<HomePage />} />
        <Route path="/environments" element={<EnvironmentsPage />} />
        <Route path="/environments/:owner/:name" element={<EnvironmentPage />} />
        <Route path="/datasets" element={<DatasetsPage />} />
        <Route path="/runs" element={<RunsPage />} />
        <Route path="/runs/:id/*" element={<RunPage />} />
        <Route path="/evaluations" element={<EvaluationsPage />} />
        <Route path="/evaluations/compare" element={<ComparisonPage />} />
        <Route path="/evaluations/:id" element={<EvaluationPage />} />
        <Route path="/models" element={<ModelsPage />} />
        <Route path="/chat" element={<ChatPage />} />
        <Route path="/billing" element={<BillingPage />} />
        <Route path="/keys" element={<KeysPage />} />
        <Route path="/team" element={<TeamPage />} />
        {/* The public client prints these addresses. */}
        <Route path="/dashboard/tokens/challenge" element={<LoginRequestPage />} />
        <Route path="/dashboard/environments/:owner/:name" element={<Moved to="/environments/:owner/:name" />} />
        <Route path="/dashboard/training/:id" element={<Moved to="/runs/:id" />} />
        <Route path="/dashboard/evaluations/:id" element={<Moved to="/evaluations/:id" />} />
        <Route path="/dashboard/billing" element={<Moved to="/billing" />} />
        <Route path="/dashboard/tokens" element={<Moved to="/keys" />} />
        <Route path="*" element={<NotFound />} />
      </Routes>
    </Suspense>
  );
}

function Moved({ to }: { to: string }) {
  const values = useParams();
  return <Navigate replace to={to.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ""))} />;
}

function NotFound() {
  return (
    <>
      <Heading title="There is no such page" />
      <Empty title="Nothing stands at this address."><Link to="/">Go to the first page</Link></Empty>
    </>
  );
}
