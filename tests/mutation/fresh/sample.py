import yaml, random, collections, sys
F=yaml.safe_load(open(sys.argv[1])); seed=int(sys.argv[3]); random.seed(seed)
n=collections.Counter({"planning":16,"core":10,"certificate":10,"control":10})
by=collections.defaultdict(list)
for f in F: by["cli" if f["file"].split("/")[1] in ("api.py","__init__.py","errors.py") else f["file"].split("/")[1]].append(f)
out=[]
for k,v in by.items():
    random.shuffle(v); out+=v[:n.get(k,8)]
random.shuffle(out)
yaml.safe_dump(out,open(sys.argv[2],"w"),sort_keys=False,allow_unicode=True,width=110); print(len(out),seed)
