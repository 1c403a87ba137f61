/** The frame of every page: navigation, team switcher, theme, account. Knows no page's content. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import { NavLink, useLocation, useNavigate } from "react-router";
import { useAction } from "./api/use-action";
import { Segmented, Select } from "./design/form";
import { Mark } from "./design/icons";
import { Problem } from "./design/notice";
import { type Theme, chooseTheme, chosenTheme } from "./design/theme";
import { useSession } from "./session";

const AREAS = [
  ["Work", [["/", "Home"], ["/environments", "Environments"], ["/datasets", "Datasets"], ["/runs", "Runs"], ["/evaluations", "Evaluations"], ["/models", "Models"], ["/chat", "Chat"]]],
  ["Team", [["/billing", "Billing"], ["/keys", "Keys"], ["/team", "Team"]]],
] as const;
const THEMES = [["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]] as const;

export function Shell({ children }: { children: ReactNode }) {
  const { team } = useSession();
  const { pathname } = useLocation();
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  // A new page takes the focus, so that keyboard and screen reader start at its top; the first one leaves it to the browser.
  useEffect(() => {
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [pathname]);
  return (
    <div className="shell">
      <a className="skip" href="#main">Skip to the page</a>
      <Side key={pathname} />
      <main id="main" className="page" ref={main} tabIndex={-1} key={team.id}>{children}</main>
    </div>
  );
}

function Side() {
  const [isOpen, setOpen] = useState(false);
  return (
    <header className="side" data-open={isOpen}>
      <NavLink to="/" className="brand"><Mark />Rootstock</NavLink>
      <button type="button" className="button slim menu-button" aria-expanded={isOpen} aria-controls="side-body" onClick={() => setOpen(!isOpen)}>Menu</button>
      <div className="side-body" id="side-body">
        <TeamSwitcher />
        <nav className="nav" aria-label="Main">
          {AREAS.map(([area, pages]) => (
            <ul key={area} aria-label={area}>
              {pages.map(([to, label]) => <li key={to}><NavLink to={to} end={to === "/"}>{label}</NavLink></li>)}
            </ul>
          ))}
        </nav>
        <Account />
      </div>
    </header>
  );
}

function TeamSwitcher() {
  const { teams, team, chooseTeam } = useSession();
  const navigate = useNavigate();
  const choose = (id: string) => {
    chooseTeam(id);
    void navigate("/"); // What is open belongs to the former team.
  };
  return (
    <Select
      label="Team"
      value={team.id}
      options={teams.map((one) => [one.id, one.is_personal ? `${one.slug} (personal)` : one.name] as const)}
      onChange={(event) => choose(event.currentTarget.value)}
    />
  );
}

function Account() {
  const { user, signOut } = useSession();
  const [theme, setTheme] = useState(chosenTheme);
  const leaving = useAction(signOut);
  const choose = (value: Theme) => {
    chooseTheme(value);
    setTheme(value);
  };
  return (
    <div className="account">
      <Segmented label="Theme" options={THEMES} chosen={theme} onChoose={choose} />
      <span className="who">{user.email}</span>
      <button type="button" className="button slim" disabled={leaving.isBusy} onClick={() => void leaving.run()}>Sign out</button>
      <Problem of={leaving.problem} />
    </div>
  );
}
