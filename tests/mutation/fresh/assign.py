"""assign.py ROOT IN.yaml OUT.yaml: adapt files to where code has moved, add tests by import."""
import ast, collections, pathlib, re, sys, yaml
root, src, out = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
faults = yaml.safe_load(open(src))
mods = {".".join(f.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): f for f in (root/"mcplan").rglob("*.py")}
texts = {f: f.read_text() for f in mods.values()}
def imports(tree):
    r=set()
    for x in ast.walk(tree):
        if isinstance(x, ast.ImportFrom) and x.module:
            for a in x.names:
                t=f"{x.module}.{a.name}"; r.add(t if t in mods else x.module)
        elif isinstance(x, ast.Import):
            r|={a.name for a in x.names}
    return r
graph={m: imports(ast.parse(texts[f])) & set(mods) for m,f in mods.items()}
home={}
t=ast.parse((root/"mcplan/__init__.py").read_text())
for x in ast.walk(t):
    if isinstance(x, ast.Dict):
        for k,v in zip(x.keys,x.values):
            if isinstance(k,ast.Constant) and isinstance(v,ast.Constant) and str(k.value).startswith("mcplan."):
                for n in str(v.value).split(): home[n]=k.value
tests={}
for f in (root/"tests").rglob("test_*.py"):
    if "mutation" in f.parts: continue
    s=f.read_text(); i=imports(ast.parse(s)) 
    i|={home[n] for n in re.findall(r"\bmc\.(\w+)",s) if n in home}
    tests[str(f.relative_to(root))]=(i,len(s),s)
users=collections.defaultdict(set)
for m,g in graph.items():
    for d in g: users[d].add(m)
missing=[]; done=[]
for f in faults:
    p=root/f["file"]
    if p not in texts or texts[p].count(f["find"])!=1:
        cand=[q for q,s in texts.items() if s.count(f["find"])==1]
        if len(cand)==1: p=cand[0]; f["file"]=str(p.relative_to(root))
        else: missing.append(f["id"]); continue
    m=".".join(pathlib.Path(f["file"]).with_suffix("").parts).removesuffix(".__init__")
    pkg=f["file"].split("/")[1]; sub="/".join(f["file"].split("/")[1:-1])
    score={}
    near=users[m]
    # names of functions around the fault
    for t_,(i,n,s) in tests.items():
        v=0
        if m in i: v+=10
        v+=3*len(i & near)/ (1+len(near)**0.5) if near else 0
        if t_.startswith(f"tests/{sub}/"): v+=3
        elif t_.startswith(f"tests/{pkg}/"): v+=1.5
        stem=m.split(".")[-1]
        if stem in t_: v+=6
        if v: score[t_]=v-n/40000
    best=sorted(score,key=lambda k:-score[k])[:7]
    f["tests"]=best or [f"tests/{pkg}"]
    done.append(f)
yaml.safe_dump(done, open(out,"w"), sort_keys=False, allow_unicode=True, width=110)
print(len(done), "assigned;", len(missing), "missing:", *missing)
